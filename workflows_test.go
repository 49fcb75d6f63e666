package ingot_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	usesLine   = regexp.MustCompile(`^\s*(?:-\s+)?["']?uses["']?\s*:\s*(.*)$`)
	pinnedUses = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	localUses  = regexp.MustCompile(`^\./[\w./-]+$`)
	pinnedTags = regexp.MustCompile(`^docker://\S+@sha256:[0-9a-f]{64}( # \S+)?$`)
)

// unpinned returns what a line of a workflow runs of others, if that can change without a commit here.
func unpinned(line string) string {
	m := usesLine.FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	value := strings.TrimSpace(m[1])
	if pinnedUses.MatchString(value) || localUses.MatchString(value) || pinnedTags.MatchString(value) {
		return ""
	}
	return value
}

// Workflows run actions of others by the hash of a commit, with its version in a comment, and have no more than
// reading rights unless a job asks for them.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob(".github/workflows/*.y*ml")
	if err != nil {
		t.Fatal(err)
	}
	composite, err := filepath.Glob(".github/actions/*/action.y*ml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no workflows in .github/workflows")
	}
	for _, file := range append(files, composite...) {
		eachLine(t, file, func(n int, line string) {
			if what := unpinned(line); what != "" {
				t.Errorf("%s:%d: %s: name the action by the 40 digits of a commit, with its version: "+
					"OWNER/NAME@HASH # v1.2.3", file, n, what)
			}
		})
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains("\n"+string(text), "\npermissions:\n  contents: read\n") {
			t.Errorf("%s: want permissions: contents: read at the top; a job that needs more asks for it", file)
		}
	}
}

func TestUnpinned(t *testing.T) {
	const hash = "3d3c42e5aac5ba805825da76410c181273ba90b1"
	for line, want := range map[string]string{
		"      - uses: actions/checkout@" + hash + " # v7.0.1":      "",
		"        uses: a/b/c.yml@" + hash + " # v1.2.3":             "",
		"      - uses: ./.github/actions/build":                     "",
		"      - run: echo uses: a/b@main":                          "",
		"      - uses: actions/checkout@v7":                         "actions/checkout@v7",
		"      - uses: actions/checkout@" + hash:                    "actions/checkout@" + hash,
		"      - uses: actions/checkout@" + hash[:12] + " # v7.0.1": "actions/checkout@" + hash[:12] + " # v7.0.1",
		"      - uses: actions/checkout@" + hash + " # latest":      "actions/checkout@" + hash + " # latest",
		`      - "uses": "a/b@main"`:                                `"a/b@main"`,
		"      - uses: docker://alpine:3":                           "docker://alpine:3",
	} {
		if got := unpinned(line); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
