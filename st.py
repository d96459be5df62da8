import sys
from memdiag import mark
kept=[]
for s in range(1,int(sys.argv[1])+1):
    kept.append(bytes(3000)); mark(step=s)
