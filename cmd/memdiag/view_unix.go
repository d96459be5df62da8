//go:build unix

package main

import "syscall"

// notWaiting opens a pipe without waiting for its writer.
const notWaiting = syscall.O_NONBLOCK
