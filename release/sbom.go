package main

import (
	"encoding/json"
	"strings"
	"time"
)

// The parts of CycloneDX 1.6 that a list of Go modules needs. It has no serial number, which would
// differ from build to build.
type (
	bom struct {
		Schema       string       `json:"$schema"`
		Format       string       `json:"bomFormat"`
		SpecVersion  string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     bomMetadata  `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	bomMetadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		PURL       string     `json:"purl"`
		Properties []property `json:"properties,omitempty"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	}
)

// sbom lists the modules in the binary, as the Go toolchain has written them into it, and the
// toolchain's own library.
func (b *binary) sbom() (name string, content []byte, err error) {
	self := library(b.info.Main.Path, b.version)
	self.Type = "application"
	for _, s := range b.info.Settings { // how it was built, for who builds it again
		if s.Value != "" {
			self.Properties = append(self.Properties, property{"memdiag:build:" + s.Key, s.Value})
		}
	}
	list := bom{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata:     bomMetadata{b.time.Format(time.RFC3339), self},
		Components:   []component{library("stdlib", strings.TrimPrefix(b.info.GoVersion, "go"))},
		Dependencies: []dependency{{Ref: self.Ref}},
	}
	for _, module := range b.info.Deps {
		if module.Replace != nil && module.Replace.Version != "(devel)" { // a folder in its place is made of the module: see fonts.go
			module = module.Replace
		}
		part := library(module.Path, module.Version)
		if module.Sum != "" {
			part.Properties = []property{{"memdiag:go.sum", module.Sum}} // of the list of its files, and so no hash of CycloneDX
		}
		list.Components = append(list.Components, part)
	}
	for _, c := range list.Components {
		list.Dependencies[0].DependsOn = append(list.Dependencies[0].DependsOn, c.Ref)
	}
	content, err = json.MarshalIndent(list, "", "  ")
	return b.releaseName() + ".cdx.json", append(content, '\n'), err
}

func library(path, version string) component {
	purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return component{Type: "library", Ref: purl, Name: path, Version: version, PURL: purl}
}
