package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/ingotml/ingot/cmd/supply/parts"
)

// The members of https://cyclonedx.org/docs/1.6/json/ that a bill has.
type (
	bill struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Serial       string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp,omitempty"`
		Component component `json:"component"`
	}
	component struct {
		Ref        string     `json:"bom-ref"`
		Type       string     `json:"type"`
		Name       string     `json:"name"`
		Version    string     `json:"version,omitempty"`
		Scope      string     `json:"scope,omitempty"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Licenses   []license  `json:"licenses,omitempty"`
		PURL       string     `json:"purl,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	license struct {
		Expression string `json:"expression"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn,omitempty"`
	}
)

// program is a built ingot.
type program struct {
	info     *debug.BuildInfo
	sum      [sha256.Size]byte
	platform string // OS/ARCH
}

func readProgram(path string) (program, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return program{}, err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return program{}, err
	}
	p := program{info: info, sum: sha256.Sum256(data)}
	if info.Path != parts.Program {
		return program{}, fmt.Errorf("%s is the program %s, want %s", path, info.Path, parts.Program)
	}
	p.platform = p.setting("GOOS") + "/" + p.setting("GOARCH")
	return p, nil
}

func (p program) setting(key string) string {
	for _, s := range p.info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// bill lists what the program contains, of the modules of these sources, and the engine's packages.
func (p program) bill(modules []parts.Module, wheels []parts.Wheel) (bill, error) {
	version := strings.TrimPrefix(p.info.Main.Version, "(devel)")
	root := component{
		Type: "application", Name: "ingot", Version: version,
		Hashes:   []hash{{"SHA-256", hex.EncodeToString(p.sum[:])}},
		Licenses: []license{{"Apache-2.0"}},
		PURL:     modulePURL(p.info.Main.Path, version),
	}
	root.Ref = root.PURL
	for _, key := range []string{"GOOS", "GOARCH", "CGO_ENABLED", "vcs.revision"} {
		if value := p.setting(key); value != "" {
			root.Properties = append(root.Properties, property{"ingot:build:" + key, value})
		}
	}
	goVersion := strings.TrimPrefix(p.info.GoVersion, "go")
	list := []component{{
		Ref: modulePURL("std", goVersion), Type: "library", Name: "std", Version: goVersion, Scope: "required",
		Licenses: []license{{"BSD-3-Clause"}},
		PURL:     modulePURL("std", goVersion),
	}}
	for _, dep := range p.info.Deps {
		c, err := moduleComponent(dep, modules)
		if err != nil {
			return bill{}, err
		}
		list = append(list, c)
	}
	for _, w := range wheels {
		list = append(list, wheelComponent(w))
	}
	all := dependency{Ref: root.Ref}
	var leaves []dependency
	for _, c := range list {
		all.DependsOn = append(all.DependsOn, c.Ref)
		leaves = append(leaves, dependency{Ref: c.Ref})
	}
	return bill{
		Format: "CycloneDX", Spec: "1.6", Serial: p.serial(), Version: 1,
		Metadata:   metadata{Timestamp: p.setting("vcs.time"), Component: root},
		Components: list, Dependencies: slices.Concat([]dependency{all}, leaves),
	}, nil
}

// serial is a UUID of version 8 (RFC 9562), made from the program's hash.
func (p program) serial() string {
	u := [16]byte(p.sum[:16])
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

func moduleComponent(dep *debug.Module, modules []parts.Module) (component, error) {
	if dep.Replace != nil {
		dep = dep.Replace
	}
	i := slices.IndexFunc(modules, func(m parts.Module) bool { return m.Path == dep.Path })
	if i < 0 || modules[i].Version != dep.Version || modules[i].Sum != dep.Sum {
		return component{}, fmt.Errorf("the program contains %s@%s, which go.mod here does not name: "+
			"build it from these sources", dep.Path, dep.Version)
	}
	// The sum is that of https://go.dev/ref/mod#go-sum-files.
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(dep.Sum, "h1:"))
	if err != nil {
		return component{}, fmt.Errorf("sum of %s: %w", dep.Path, err)
	}
	purl := modulePURL(dep.Path, dep.Version)
	return component{
		Ref: purl, Type: "library", Name: dep.Path, Version: dep.Version, Scope: "required",
		Hashes:   []hash{{"SHA-256", hex.EncodeToString(sum)}},
		Licenses: []license{{strings.Join(modules[i].Licenses, " AND ")}},
		PURL:     purl,
	}, nil
}

func wheelComponent(w parts.Wheel) component {
	purl := "pkg:pypi/" + w.Name + "@" + w.Version
	c := component{
		Ref: purl, Type: "library", Name: w.Name, Version: w.Version, Scope: "optional", PURL: purl,
	}
	if w.License != "NOASSERTION" {
		c.Licenses = []license{{w.License}}
	}
	for _, f := range w.Flavours {
		c.Properties = append(c.Properties, property{"ingot:engine:flavour", string(f)})
	}
	for _, sum := range w.SHA256 {
		c.Properties = append(c.Properties, property{"ingot:engine:sha256", sum})
	}
	return c
}

// modulePURL is a module's package URL: https://github.com/package-url/purl-spec.
func modulePURL(path, version string) string {
	elements := strings.Split(path, "/")
	for i, e := range elements {
		elements[i] = url.PathEscape(e)
	}
	purl := "pkg:golang/" + strings.Join(elements, "/")
	if version != "" {
		purl += "@" + strings.ReplaceAll(url.PathEscape(version), "+", "%2B")
	}
	return purl
}
