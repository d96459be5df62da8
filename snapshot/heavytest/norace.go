//go:build !race

package heavytest

const race = false
