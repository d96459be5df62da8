//go:build race

package heavytest

const race = true
