import os, sys, time
time.sleep(float(sys.argv[1]))
