package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd/supply/parts"
	"github.com/ingotml/ingot/mlx/engine"
)

func sample() program {
	return program{
		sum: sha256.Sum256([]byte("a program")), platform: "linux/arm64",
		info: &debug.BuildInfo{
			GoVersion: "go1.26.11", Path: parts.Program,
			Main: debug.Module{Path: "github.com/ingotml/ingot", Version: "v1.2.0"},
			Deps: []*debug.Module{
				{Path: "example.com/a", Version: "v0.1.0", Sum: "h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="},
				{Path: "example.com/b/v2", Version: "v2.0.0+incompatible", Sum: "h1:AAEC"},
			},
			Settings: []debug.BuildSetting{
				{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "arm64"}, {Key: "-trimpath", Value: "true"},
				{Key: "vcs.revision", Value: "12ab"}, {Key: "vcs.time", Value: "2026-11-30T00:00:00Z"},
			},
		},
	}
}

var sampleModules = []parts.Module{
	{Path: "example.com/a", Version: "v0.1.0", Sum: "h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
		Licenses: []string{"Apache-2.0", "MIT"}},
	{Path: "example.com/b/v2", Version: "v2.0.0+incompatible", Sum: "h1:AAEC", Licenses: []string{"MIT"}},
	{Path: "example.com/only-on-windows", Version: "v1.0.0", Sum: "h1:AAEC", Licenses: []string{"MIT"}},
}

var sampleWheels = []parts.Wheel{
	{Wheel: engine.Wheel{Name: "mlx-cpu", Version: "0.32.4", SHA256: []string{"0a", "0b"}}, License: "MIT",
		Flavours: []engine.Flavour{engine.CPU}},
	{Wheel: engine.Wheel{Name: "nvidia-x", Version: "1", SHA256: []string{"0c"}}, License: "NOASSERTION"},
}

func TestBill(t *testing.T) {
	b, err := sample().bill(sampleModules, sampleWheels)
	if err != nil {
		t.Fatal(err)
	}
	root := b.Metadata.Component
	if root.Version != "v1.2.0" || root.PURL != "pkg:golang/github.com/ingotml/ingot@v1.2.0" ||
		b.Metadata.Timestamp != "2026-11-30T00:00:00Z" ||
		!slices.Contains(root.Properties, property{"ingot:build:vcs.revision", "12ab"}) {
		t.Errorf("the program is %+v", b.Metadata)
	}
	var got []string
	for _, c := range b.Components {
		text := c.PURL + " " + c.Scope
		for _, l := range c.Licenses {
			text += " (" + l.Expression + ")"
		}
		for _, h := range c.Hashes {
			text += " " + h.Content
		}
		for _, p := range c.Properties {
			text += " " + p.Value
		}
		got = append(got, text)
	}
	want := []string{
		"pkg:golang/std@1.26.11 required (BSD-3-Clause)",
		"pkg:golang/example.com/a@v0.1.0 required (Apache-2.0 AND MIT) " +
			"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
		"pkg:golang/example.com/b/v2@v2.0.0%2Bincompatible required (MIT) 000102",
		"pkg:pypi/mlx-cpu@0.32.4 optional (MIT) cpu 0a 0b",
		"pkg:pypi/nvidia-x@1 optional 0c",
	}
	if !slices.Equal(got, want) {
		t.Errorf("components:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	refs := []string{root.Ref}
	for _, c := range b.Components {
		refs = append(refs, c.Ref)
	}
	if len(b.Dependencies) != len(refs) || !slices.Equal(b.Dependencies[0].DependsOn, refs[1:]) {
		t.Errorf("dependencies: %+v", b.Dependencies)
	}
	uuid := strings.TrimPrefix(b.Serial, "urn:uuid:")
	if len(uuid) != 36 || uuid[14] != '8' || !strings.ContainsRune("89ab", rune(uuid[19])) {
		t.Errorf("serial number %s is not a UUID of version 8", b.Serial)
	}
}

func TestNoVersion(t *testing.T) {
	p := sample()
	p.info.Main.Version = "(devel)" // as the linker writes it
	b, err := p.bill(sampleModules, nil)
	if c := b.Metadata.Component; err != nil || c.Version != "" || c.PURL != "pkg:golang/github.com/ingotml/ingot" {
		t.Errorf("%+v, %v", c, err)
	}
}

// A program of other sources has no bill, since the licenses of its modules are not known.
func TestOtherSources(t *testing.T) {
	p := sample()
	p.info.Deps[1].Version = "v2.0.1"
	if _, err := p.bill(sampleModules, nil); err == nil || !strings.Contains(err.Error(), "example.com/b/v2@v2.0.1") {
		t.Errorf("another version of a module: %v", err)
	}
	if _, err := readProgram(os.Args[0]); err == nil || !strings.Contains(err.Error(), "want "+parts.Program) {
		t.Errorf("another program: %v", err)
	}
}

// Equal programs have equal bills.
func TestEqualBills(t *testing.T) {
	write := func() []byte {
		b, err := sample().bill(sampleModules, sampleWheels)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if first := write(); !bytes.Equal(first, write()) {
		t.Error("two bills of a program differ")
	}
}
