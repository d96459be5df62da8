//go:build !unix

package main

const notWaiting = 0
