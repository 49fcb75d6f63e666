package engine

import (
	"embed"
	"fmt"
	"strings"
)

// lockFiles are in pip's requirements format, with hashes. Their comments list the platforms and pip platform tags that
// they apply to. lock/update.py generates them.
//
//go:embed lock/*.txt
var lockFiles embed.FS

var flavours = []Flavour{CPU, Metal, CUDA12, CUDA13}

// lock is one flavour's wheels.
type lock struct {
	platforms map[string][]string // pip's tags by "os/arch", preferred first
	packages  []lockedPackage     // MLX first
}

type lockedPackage struct {
	name, version string
	hashes        []string // sha256 in hex, one per platform's wheel
}

func (p lockedPackage) String() string { return p.name + " " + p.version }

func lockOf(f Flavour) (*lock, error) {
	text, err := lockFiles.ReadFile("lock/" + string(f) + ".txt")
	if err != nil {
		names := make([]string, len(flavours))
		for i, known := range flavours {
			names[i] = string(known)
		}
		return nil, failf(ErrUnsupported, "unknown engine flavour %q: must be one of %s", f, strings.Join(names, ", "))
	}
	l, err := parseLock(string(text))
	if err != nil {
		return nil, fmt.Errorf("lock/%s.txt: %w", f, err)
	}
	return l, nil
}

// availableOn lists the flavours that exist for a platform.
func availableOn(platform string) []string {
	var have []string
	for _, f := range flavours {
		if l, err := lockOf(f); err == nil && len(l.platforms[platform]) > 0 {
			have = append(have, string(f))
		}
	}
	return have
}

func parseLock(text string) (*lock, error) {
	l := &lock{platforms: map[string][]string{}}
	text = strings.ReplaceAll(text, "\\\n", " ")
	for i, line := range strings.Split(text, "\n") {
		if comment, ok := strings.CutPrefix(line, "#"); ok {
			if f := strings.Fields(comment); len(f) > 2 && f[0] == "platform" {
				l.platforms[f[1]] = f[2:]
			}
			continue
		}
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		name, version, ok := strings.Cut(f[0], "==")
		p := lockedPackage{name: name, version: version}
		for _, option := range f[1:] {
			hash, isHash := strings.CutPrefix(option, "--hash=sha256:")
			ok = ok && isHash && len(hash) == 64
			p.hashes = append(p.hashes, hash)
		}
		if !ok || len(p.hashes) == 0 {
			return nil, fmt.Errorf("requirement %d is not name==version with sha256 hashes: %q", i+1, line)
		}
		l.packages = append(l.packages, p)
	}
	if len(l.packages) == 0 {
		return nil, fmt.Errorf("no requirements")
	}
	return l, nil
}

// requirements returns the lock as a requirements file for pip.
func (l *lock) requirements() string {
	var b strings.Builder
	for _, p := range l.packages {
		fmt.Fprintf(&b, "%s==%s", p.name, p.version)
		for _, h := range p.hashes {
			fmt.Fprintf(&b, " --hash=sha256:%s", h)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
