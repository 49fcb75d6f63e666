// Package parts lists what ingot contains besides its own code: the Go modules that the program is built from on any
// system, with their licenses, and the packages of the engine.
//
// It reads licenses from the module cache, by their text. What has no license, or one that is not in the list of
// allowed ones, is an error.
package parts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// Program is the package of the program.
const Program = "github.com/ingotml/ingot/cmd/ingot"

// systems are the operating systems whose builds differ in their modules.
var systems = []string{"linux", "darwin", "windows"}

// allowed are the licenses, by SPDX identifier, that modules may have. To allow one is a decision: it must let binaries
// be passed on without their sources and without further terms for users.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT"}

// minCoverage is the share of a license's file, in percent, that must be the text of licenses. The rest names authors.
const minCoverage = 75

// Module is a Go module that is linked into the program.
type Module struct {
	Path, Version string
	Sum           string   // h1:..., as in go.sum; "" for the standard library
	Licenses      []string // SPDX identifiers
	Texts         []Text   // of its licenses and notices
}

// Text is a file of a module that must be passed on with the program.
type Text struct {
	Name string // path in the module
	Text string
}

// String is the module as the go command writes it.
func (m Module) String() string { return strings.TrimSuffix(m.Path+"@"+m.Version, "@") }

// Modules lists the modules of the program, by path, and the standard library first. It runs in a folder of ingot's
// module.
func Modules(ctx context.Context) ([]Module, error) {
	root, err := goCommand(ctx, nil, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	found := map[string]*source{
		"": {module: Module{Path: "Go standard library"}, dir: strings.TrimSpace(string(root)), packages: map[string]bool{}},
	}
	for _, system := range systems {
		if err := addModules(ctx, found, system); err != nil {
			return nil, err
		}
	}
	var list []Module
	for _, path := range slices.Sorted(maps.Keys(found)) {
		m, err := found[path].read()
		if err != nil {
			return nil, fmt.Errorf("license of %s: %w", m, err)
		}
		list = append(list, m)
	}
	return list, nil
}

// source is a module and where its files are.
type source struct {
	module   Module
	dir      string
	packages map[string]bool // folders of those that the program imports
}

func addModules(ctx context.Context, found map[string]*source, system string) error {
	out, err := goCommand(ctx, []string{"GOOS=" + system, "CGO_ENABLED=0"},
		"list", "-deps", "-json=Dir,Module", Program)
	if err != nil {
		return err
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir    string
			Module *struct {
				Path, Version, Sum, Dir string
				Main                    bool
			}
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("go list: %w", err)
		}
		if p.Module == nil || p.Module.Main {
			continue
		}
		s := found[p.Module.Path]
		if s == nil {
			s = &source{
				module:   Module{Path: p.Module.Path, Version: p.Module.Version, Sum: p.Module.Sum},
				dir:      p.Module.Dir,
				packages: map[string]bool{},
			}
			found[p.Module.Path] = s
		}
		s.packages[p.Dir] = true
	}
}

// read adds the licenses that apply to the module's imported packages: those of their folders and of the folders above.
func (s *source) read() (Module, error) {
	m := s.module
	dirs := map[string]bool{s.dir: true}
	for dir := range s.packages {
		for ; strings.HasPrefix(dir, s.dir); dir = filepath.Dir(dir) {
			dirs[dir] = true
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if err := s.readFolder(&m, dir); err != nil {
			return m, err
		}
	}
	if len(m.Licenses) == 0 {
		return m, fmt.Errorf("no LICENSE or COPYING in %s", s.dir)
	}
	slices.Sort(m.Licenses)
	m.Licenses = slices.Compact(m.Licenses)
	return m, nil
}

var (
	licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([.-].*)?$`)
	docsLicense = regexp.MustCompile(`(?i)[.-]docs?$`) // of a module's documentation, which the program does not contain
	noticeName  = regexp.MustCompile(`(?i)^notice([.-].*)?$`)
)

func (s *source) readFolder(m *Module, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		license := licenseName.MatchString(e.Name()) && !docsLicense.MatchString(e.Name())
		if e.IsDir() || !license && !noticeName.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(s.dir, path)
		if err != nil {
			return err
		}
		if license {
			ids, err := Recognize(text)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			m.Licenses = append(m.Licenses, ids...)
		}
		m.Texts = append(m.Texts, Text{filepath.ToSlash(name), string(text)})
	}
	return nil
}

// Recognize returns the licenses in a text, by SPDX identifier. A license that is not allowed is an error, and so is a
// text that is largely something else.
func Recognize(text []byte) ([]string, error) {
	c := licensecheck.Scan(text)
	var ids []string
	for _, match := range c.Match {
		if match.IsURL {
			continue
		}
		if !slices.Contains(allowed, match.ID) {
			return nil, fmt.Errorf("%s is not in the list of allowed licenses in cmd/supply/parts: do without the module, "+
				"or decide that ingot may be distributed with it and add it", match.ID)
		}
		ids = append(ids, match.ID)
	}
	if len(ids) == 0 || c.Percent < minCoverage {
		return nil, fmt.Errorf("only %.0f %% of the text is that of a known license %v", c.Percent, ids)
	}
	return ids, nil
}

func goCommand(ctx context.Context, environ []string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, "go", args...)
	c.Env = append(os.Environ(), environ...)
	out, err := c.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}
