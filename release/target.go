package main

import (
	"debug/buildinfo"
	"debug/elf"
	"debug/macho"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// target is a platform that memdiag is built for.
type target struct {
	name         string
	goos, goarch string
	tags         string // of the build
	wheelTag     string // the platforms of its wheel, as pip calls them
}

// targets are all platforms. On Linux the ordinary build loads Vulkan by glibc's loader; the
// static one needs no library, has no GPU backend, and serves where the C library is musl. Go 1.26
// needs macOS 12. Any glibc serves, since the binary asks for symbols without versions; 2.17 is the
// oldest that pip has a name for and Go's kernel still runs with.
var targets = []target{
	{"linux-amd64", "linux", "amd64", "", "manylinux_2_17_x86_64.manylinux2014_x86_64"},
	{"linux-arm64", "linux", "arm64", "", "manylinux_2_17_aarch64.manylinux2014_aarch64"},
	{"linux-amd64-static", "linux", "amd64", "static", "musllinux_1_1_x86_64"},
	{"linux-arm64-static", "linux", "arm64", "static", "musllinux_1_1_aarch64"},
	{"darwin-amd64", "darwin", "amd64", "", "macosx_12_0_x86_64"},
	{"darwin-arm64", "darwin", "arm64", "", "macosx_12_0_arm64"},
}

func targetOf(name string) (target, bool) {
	for _, t := range targets {
		if t.name == name {
			return t, true
		}
	}
	return target{}, false
}

// binary is memdiag, built for a target.
type binary struct {
	target
	path    string
	info    *buildinfo.BuildInfo
	version string    // as the go command stamped it, such as v1.2.3
	time    time.Time // that all files beside it have
}

// build writes memdiag for the target to path, with the modules of modfile, and checks that it is for that target.
func (t target) build(path, modfile string) (*binary, error) {
	command := exec.Command("go", "build", "-modfile="+modfile, "-buildvcs=true", "-trimpath", "-ldflags=-s -w", "-tags="+t.tags, "-o", path, "./cmd/memdiag")
	// What a user's environment may set for his own builds must not change ours.
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.goos, "GOARCH="+t.goarch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-mod=readonly", "GOEXPERIMENT=", "GOFIPS140=off")
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("go build: %w", err)
	}
	if err := t.check(path); err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	commit := ""
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			commit = s.Value
		}
	}
	at, err := timeOf(os.Getenv("SOURCE_DATE_EPOCH"), commit)
	if err != nil {
		return nil, err
	}
	return &binary{t, path, info, info.Main.Version, at}, nil
}

var (
	elfMachines   = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	machoMachines = map[string]macho.Cpu{"amd64": macho.CpuAmd64, "arm64": macho.CpuArm64}
)

// check reads a program's header: it is for the target's processor, and needs a loader unless it is
// static.
func (t target) check(path string) error {
	if t.goos == "darwin" {
		f, err := macho.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it was only read
		if f.Cpu != machoMachines[t.goarch] || f.Type != macho.TypeExec {
			return fmt.Errorf("%s is a %v for %v", path, f.Type, f.Cpu)
		}
		return t.checkMac(f)
	}
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	if f.Machine != elfMachines[t.goarch] {
		return fmt.Errorf("%s is for %v", path, f.Machine)
	}
	loader := false
	for _, p := range f.Progs {
		loader = loader || p.Type == elf.PT_INTERP
	}
	if loader == (t.tags == "static") {
		return fmt.Errorf("%s: built with tags %q, and a loader is needed: %t", path, t.tags, loader)
	}
	if f.SectionByType(elf.SHT_GNU_VERNEED) != nil {
		return fmt.Errorf("%s needs a version of glibc", path)
	}
	return nil
}

// Load commands of a Mach-O file: which macOS its program needs, and that it is signed.
const (
	buildVersion  = 0x32
	codeSignature = 0x1d
)

// checkMac reads a program's load commands: it needs the macOS that its wheel is named for, and has the
// signature without which macOS on arm64 ends it.
func (t target) checkMac(f *macho.File) error {
	needs, signed := "", t.goarch != "arm64"
	for _, c := range f.Loads {
		raw := c.Raw()
		switch command := f.ByteOrder.Uint32(raw); {
		case command == buildVersion && len(raw) >= 16: // the command, its size, the platform, the version
			version := f.ByteOrder.Uint32(raw[12:])
			needs = fmt.Sprintf("macosx_%d_%d_", version>>16, version>>8&0xff)
		case command == codeSignature:
			signed = true
		}
	}
	if needs == "" || !strings.HasPrefix(t.wheelTag, needs) {
		return fmt.Errorf("the program needs %q, and its wheel is for %s", needs, t.wheelTag)
	}
	if !signed {
		return errors.New("the program has no signature, and macOS on arm64 ends it")
	}
	return nil
}
