package cmd_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// rendered is the result of `ingot template`.
type rendered struct {
	code int
	errs string
	peak int64 // bytes
	took time.Duration
}

// template runs `ingot template` on a text without variables.
func template(t *testing.T, text string) rendered {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, "chat.template")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := command(home, "template", file)
	var errs bytes.Buffer
	c.Stdin, c.Stderr = strings.NewReader("{}"), &errs
	begun := time.Now()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	watch := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
	defer watch.Stop()
	_ = c.Wait() // the exit code suffices
	usage := c.ProcessState.SysUsage().(*syscall.Rusage)
	return rendered{c.ProcessState.ExitCode(), errs.String(), usage.Maxrss << 10, time.Since(begun)}
}

// TestTemplateHostile checks that templates that overflow a parser's stack, take minutes to analyze or produce a huge
// text fail soon, with one line and little memory.
func TestTemplateHostile(t *testing.T) {
	var chain strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&chain, "{{define \"t%d\"}}{{template \"t%d\"}}{{end}}", i, i+1)
	}
	few, _, _ := strings.Cut(chain.String(), `{{define "t499"}}`)
	idle := template(t, "x")
	if idle.code != 0 {
		t.Fatalf("a template of one letter: %+v", idle)
	}
	room := int64(64 << 20)
	if info, _ := debug.ReadBuildInfo(); slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool {
		return s.Key == "-race" && s.Value == "true"
	}) {
		room *= 8 // shadow memory of the race detector
	}
	for name, c := range map[string]struct{ text, want string }{
		"if":                 {strings.Repeat("{{if 1}}", 500_000), "bytes; at most"},
		"if with ends":       {strings.Repeat("{{if 1}}", 500_000) + strings.Repeat("{{end}}", 500_000), "bytes; at most"},
		"if, short":          {strings.Repeat("{{if 1}}", 15_000) + strings.Repeat("{{end}}", 15_000), "nested more than"},
		"definitions":        {chain.String(), "bytes; at most"},
		"definitions, short": {few + strings.Repeat(`{{define "u"}}{{end}}`, 8000), "definitions"},
		"long text, Go":      {"{{$x := `0123456789`}}{{range 30}}{{$x = print $x $x}}{{end}}{{$x}}", "bytes of memory"},
		"long output, Go":    {"{{range 500000}}" + strings.Repeat("x", 1000) + "{{end}}", "bytes of output"},
		"long text, Jinja":   {"{{ 'x' * 500000000 }}", "bytes of memory"},
		"long output, Jinja": {"{% for i in range(100000) %}" + strings.Repeat("x", 5000) + "{% endfor %}",
			"bytes of output"},
		"long list, Jinja": {"{% set ns = namespace(l=[0]) %}{% for i in range(30) %}" +
			"{% set ns.l = ns.l + ns.l %}{% endfor %}",
			"bytes of memory"},
		"deep, Jinja":        {"{{ " + strings.Repeat("(", 200_000), "nested too deeply"},
		"many tokens, Jinja": {strings.Repeat("{{a}}", 50_000) + "{{ 1 ++", "Syntax"},
		"branches, Jinja": {"{% if 0 %}" + strings.Repeat("{% set a = 1 %}{% elif 0 %}", 9000) + "{% endif %}{{ x.y }}",
			"undefined"},
		"deep and recursive": {"{% macro m() %}{{ 0" + strings.Repeat("+0", 900) + "+(m()|length) }}{% endmacro %}{{ m() }}",
			"recursion"},
	} {
		got := template(t, c.text)
		t.Logf("%s: %.1f s, %d MiB above idle", name, got.took.Seconds(), (got.peak-idle.peak)>>20)
		if got.code != 1 || strings.Count(got.errs, "\n") != 1 || !strings.HasPrefix(got.errs, "ingot: ") ||
			!strings.Contains(got.errs, c.want) {
			t.Errorf("%s: exit code %d, want 1 and one line with %q: %.300s", name, got.code, c.want, got.errs)
		}
		if got.peak > idle.peak+room {
			t.Errorf("%s: %d bytes at most, %d of an idle process", name, got.peak, idle.peak)
		}
		if got.took > 10*time.Second {
			t.Errorf("%s: %s", name, got.took)
		}
	}
}
