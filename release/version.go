package main

import (
	"fmt"
	"regexp"
)

var (
	semantic = regexp.MustCompile(`^v(\d+\.\d+\.\d+)(?:-([0-9A-Za-z.-]+))?(\+dirty)?$`)
	// pseudo is what the go command calls a commit without a tag: its time and the beginning of its hash.
	pseudo = regexp.MustCompile(`^(?:.*\.)?(\d{14})-([0-9a-f]{12})$`)
	before = regexp.MustCompile(`^(alpha|beta|rc)\.?(\d+)$`)
)

// pythonVersion is a version that the go command stamped, in Python's form: v1.2.3-rc.1 is 1.2.3rc1, and
// a commit without a tag a development version with a local part, which package indexes refuse.
func pythonVersion(stamped string) (string, error) {
	if stamped == "" || stamped == "(devel)" {
		return "0.0.0.dev0+unknown", nil // built outside a repository
	}
	parts := semantic.FindStringSubmatch(stamped)
	if parts == nil {
		return "", fmt.Errorf("version %q is not of the form v1.2.3", stamped)
	}
	version, local := parts[1], ""
	if commit := pseudo.FindStringSubmatch(parts[2]); commit != nil {
		version, local = version+".dev"+commit[1], "+g"+commit[2]
	} else if early := before.FindStringSubmatch(parts[2]); early != nil {
		version += map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}[early[1]] + early[2]
	} else if parts[2] != "" {
		return "", fmt.Errorf("version %q has no form in Python: alpha, beta or rc with a number may follow", stamped)
	}
	if parts[3] != "" {
		local = map[bool]string{true: "+dirty", false: local + ".dirty"}[local == ""]
	}
	return version + local, nil
}
