package cmd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ingotml/ingot/cmd"
	"github.com/ingotml/ingot/cmd/terminal/terminaltest"
	"github.com/ingotml/ingot/convert/provenance"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// evil is a hostile text: it clears the screen, sets the title and the clipboard, overwrites a line, forges another
// one, and reverses or hides the text that follows.
const evil = "\x1b[2J\x1b]0;title\x07\x1b]52;c;cm0=\x07\u009b31m\x7f\b\rx\nname  forged\n\u202e\u2066\u2028\U000e0041"

// firstControl returns the first control sequence in a text that a terminal would interpret, or "".
func firstControl(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n") // the line end of terminals
	for i, r := range text {
		control := r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
		tag := r >= 0xe0000 && r < 0xe0080
		if _, n := utf8.DecodeRuneInString(text[i:]); control || tag || r == utf8.RuneError && n == 1 {
			return text[i:min(i+40, len(text))]
		}
	}
	return ""
}

// onTerminal runs a command with a terminal as its output, and returns everything written there. The command draws no
// progress, so none of the sequences are its own.
func onTerminal(t *testing.T, args ...string) (shown string, code int) {
	t.Helper()
	return onTerminalOf(t, 200, args...)
}

// onTerminalOf is onTerminal with a number of columns.
func onTerminalOf(t *testing.T, columns int, args ...string) (shown string, code int) {
	t.Helper()
	t.Setenv("TERM", "dumb")
	control, tty := terminaltest.PTY(t, columns, 50)
	done := make(chan []byte)
	go func() {
		b, err := io.ReadAll(control)
		if err != nil && !errors.Is(err, syscall.EIO) { // EIO: the other end is closed
			t.Error(err)
		}
		done <- b
	}()
	code = cmd.Main(args, strings.NewReader(""), tty, tty)
	tty.Close()
	shown = string(<-done)
	control.Close()
	if bad := firstControl(shown); bad != "" {
		t.Errorf("ingot %q lets %q through in %q", args, bad, shown)
	}
	lines := strings.Split(strings.TrimSuffix(shown, "\r\n"), "\r\n")
	if last := lines[len(lines)-1]; code != 0 && shown != "" && args[0] != "fsck" && !strings.HasPrefix(last, "ingot: ") {
		t.Errorf("ingot %q: the error is not the last line of %q", args, shown)
	}
	return shown, code
}

// evilTexts creates a model whose Modelfile texts are evil.
func evilTexts(t *testing.T, home, from string) {
	t.Helper()
	texts := "FROM " + from + "\n"
	for _, c := range []string{"SYSTEM", "LICENSE", "MESSAGE user", "MESSAGE assistant", "TEMPLATE"} {
		texts += c + ` """` + c + evil + `"""` + "\n"
	}
	texts += "PARAMETER stop \"" + strings.ReplaceAll(evil, "\n", "") + "\"\n"
	file := filepath.Join(t.TempDir(), "Modelfile")
	if err := os.WriteFile(file, []byte(texts), 0o644); err != nil {
		t.Fatal(err)
	}
	if shown, code := onTerminal(t, "create", "base", "-f", file); code != 0 {
		t.Fatal(shown)
	}
}

// TestEvilImage makes every text in a manifest and a config evil, one after the other, and the texts of the image.
// Whether the image is rejected or listed, the terminal must interpret none of it.
func TestEvilImage(t *testing.T) {
	home := filepath.Join(t.TempDir(), "store")
	t.Setenv("INGOT_HOME", home)
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	t.Setenv("INGOT_ENGINE", filepath.Join(home, "none")) // commands that need an engine fail
	demo, err := filepath.Abs(filepath.Join("..", "testdata", "models", "demo"))
	if err != nil {
		t.Fatal(err)
	}
	evilTexts(t, home, demo)
	store, err := store.Open(home)
	if err != nil {
		t.Fatal(err)
	}
	name, err := manifest.ParseName("base")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := store.ResolveRaw(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	var doc ocispec.Manifest
	if err := json.Unmarshal(raw.Bytes, &doc); err != nil {
		t.Fatal(err)
	}
	config, err := store.ReadBlob(doc.Config.Digest, manifest.MaxConfigSize)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	alike := func(path string) bool { // layers of the same kind behave alike, except the first
		var i int
		if _, err := fmt.Sscanf(path, ".layers[%d]", &i); err != nil {
			return false
		}
		l := doc.Layers[i]
		key := l.MediaType + l.Annotations["org.ingotml.kind"] + path[strings.IndexByte(path, ']'):]
		defer func() { seen[key] = true }()
		return seen[key]
	}
	accepted := map[string]bool{}
	registry := newHostile(t)
	evilName := registry.addr + "/team/model:evil"
	try := func(what string, m, c any) {
		registry.serve(t, store, "evil", m, c)
		if _, code := onTerminal(t, "pull", evilName); code == 0 {
			accepted[what] = true
			onTerminal(t, "show", evilName)
			onTerminal(t, "show", evilName, "--layers")
		}
	}
	leaves(decoded(t, raw.Bytes), "", nil, func(at, text string, _ func(any)) {
		if alike(at) || strings.HasSuffix(at, "mediaType") && strings.Contains(at, "tensor") {
			return
		}
		m := decoded(t, raw.Bytes)
		leaves(m, "", nil, func(path, _ string, set func(any)) {
			if path == at {
				set(text + evil)
			}
		})
		try("manifest"+at, m, decoded(t, config))
	})
	leaves(decoded(t, config), "", nil, func(at, text string, _ func(any)) {
		if strings.Contains(at, "diffIds[") && !strings.HasSuffix(at, "[0]") {
			return
		}
		c := decoded(t, config)
		leaves(c, "", nil, func(path, _ string, set func(any)) {
			if path == at {
				set(text + evil)
			}
		})
		try("config"+at, decoded(t, raw.Bytes), c)
	})
	for _, want := range []string{"manifest.annotations.org.ingotml.model.type", "manifest.artifactType",
		"config.config.architecture"} {
		if !accepted[want] {
			t.Errorf("%s is refused: so the terminal shows nothing of it", want)
		}
	}
	// All texts at once. The types in a manifest decide whether it is a model at all.
	for _, model := range []bool{true, false} {
		m, c := decoded(t, raw.Bytes), decoded(t, config)
		turn := func(prefix string) func(path, text string, set func(any)) {
			return func(path, text string, set func(any)) {
				if what := prefix + path; accepted[what] && !(model &&
					(what == "manifest.artifactType" || what == "manifest.config.mediaType")) {
					set(text + evil)
				}
			}
		}
		leaves(m, "", nil, turn("manifest"))
		leaves(c, "", nil, turn("config"))
		registry.serve(t, store, "evil", m, c)
		if shown, code := onTerminal(t, "pull", evilName); code != 0 {
			t.Fatal(shown)
		}
		shown, code := onTerminal(t, "show", evilName)
		if code != 0 || !strings.Contains(shown, `\u001b[2J`) || strings.Contains(shown, "\nname  forged") {
			t.Errorf("a model %v: exit code %d, shown as %q", model, code, shown)
		}
		runAll(t, evilName)
	}
	runAll(t, "base")
	if shown, _ := onTerminal(t, "show", "base", "--system"); !strings.Contains(shown, `\u001b[2J\u001b]0;title\u0007`) {
		t.Errorf("the system text is shown as %q", shown)
	}
	var out, errs bytes.Buffer
	if code := cmd.Main([]string{"show", "base", "--system"}, nil, &out, &errs); code != 0 ||
		out.String() != "SYSTEM"+evil+"\n" {
		t.Errorf("a file gets %q, not the text as it is", out.String())
	}
}

// runAll runs every command that shows a model or reads it.
func runAll(t *testing.T, name string) {
	t.Helper()
	for _, args := range [][]string{
		{"ls"}, {"ls", name}, {"ls", "--json"}, {"ls", "--format", "{{.Name}} {{.Type}} {{json .}}"}, {"df"},
		{"show", name}, {"show", name, "--json"}, {"show", name, "--format", "{{.}} {{json .}}"},
		{"show", name, "--manifest"}, {"show", name, "--config"},
		{"show", name, "--layers"}, {"show", name, "--layers", "--json"}, {"show", name, "--layers", "--format", "{{.}}"},
		{"show", name, "--tensors"}, {"show", name, "--provenance"}, {"show", name, "--provenance", "--json"},
		{"show", name, "--modelfile"}, {"show", name, "--template"}, {"show", name, "--system"},
		{"show", name, "--parameters"}, {"show", name, "--license"},
		{"discover", name}, {"verify", name}, {"tokenize", name, "hello"}, {"template", name}, {"run", name, "hello"},
		{"cp", name, "copy"}, {"cp", name, "copied", "--format", "ollama"}, {"tag", name, "other"}, {"rm", "other"},
		{"prune", "--dry-run"},
		{"export", name, filepath.Join(t.TempDir(), "out")}, {"create", "again", name, "--dry-run"},
		{"quantize", name, "small", "int4"},
	} {
		onTerminal(t, args...)
	}
	for _, args := range [][]string{{"show", name, "--json"}, {"ls", "--json"}} {
		var out, errs bytes.Buffer
		if code := cmd.Main(args, nil, &out, &errs); code != 0 || firstControl(out.String()) != "" ||
			!json.Valid(out.Bytes()) {
			t.Errorf("ingot %q: exit code %d, %q is in JSON: %q", args, code, firstControl(out.String()), errs.String())
		}
	}
	onTerminal(t, "rm", "copy", "copied", "small")
}

// TestEvilProvenance does the same with the provenance record and other referrers of an image.
func TestEvilProvenance(t *testing.T) {
	home := filepath.Join(t.TempDir(), "store")
	t.Setenv("INGOT_HOME", home)
	llama := filepath.Join("..", "testdata", "models", "llama-default")
	if shown, code := onTerminal(t, "create", "a", llama, "-q", "int4", "--hash-files"); code != 0 {
		t.Fatal(shown)
	}
	store, err := store.Open(home)
	if err != nil {
		t.Fatal(err)
	}
	name, err := manifest.ParseName("a")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := store.ResolveRaw(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	list, err := store.Referrers(t.Context(), raw.Descriptor.Digest, provenance.Type)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	b, err := store.ReadBlob(list[0].Digest, manifest.MaxManifestSize)
	if err != nil {
		t.Fatal(err)
	}
	var doc ocispec.Manifest
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	record, err := store.ReadBlob(doc.Layers[0].Digest, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	v := decoded(t, record)
	leaves(v, "", nil, func(path, text string, set func(any)) {
		if !strings.Contains(path, "quantization") {
			set(text + evil)
		}
	})
	evilRecord, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	layer := doc.Layers[0]
	if layer.Digest, layer.Size, err = store.PutBytes(t.Context(), evilRecord); err != nil {
		t.Fatal(err)
	}
	annotations := map[string]string{ocispec.AnnotationTitle: evil, evil: evil}
	layers := []ocispec.Descriptor{layer}
	artifact := manifest.Artifact{Type: provenance.Type, Subject: raw.Descriptor, Layers: layers,
		Annotations: annotations}
	if _, err := store.Attach(t.Context(), artifact); err != nil {
		t.Fatal(err)
	}
	onTerminal(t, "show", "a", "--provenance")
	shown, code := onTerminalOf(t, 2000, "show", "a", "--provenance") // no cell is broken
	if code != 0 || !strings.Contains(shown, `\u001b[2J`) || strings.Contains(shown, "\nname  forged") {
		t.Errorf("exit code %d, shown as %q", code, shown)
	}
	onTerminal(t, "show", "a", "--provenance", "--format", "{{.}}")
	if shown, code = onTerminal(t, "discover", "a"); code != 0 || strings.Contains(shown, "\nname  forged") {
		t.Errorf("exit code %d, shown as %q", code, shown)
	}
	onTerminal(t, "cp", "a", "b")
}

// TestEvilStore does the same with files that somebody else left in the store.
func TestEvilStore(t *testing.T) {
	home := filepath.Join(t.TempDir(), "store")
	t.Setenv("INGOT_HOME", home)
	if shown, code := onTerminal(t, "create", "a", filepath.Join("..", "testdata", "models", "llama-default")); code != 0 {
		t.Fatal(shown)
	}
	stray := strings.NewReplacer("/", "_", "\x00", "").Replace(evil)
	for _, dir := range []string{"", "blobs", "blobs/sha256", "ingest"} {
		path := filepath.Join(home, dir, stray)
		if os.WriteFile(path, []byte("x"), 0o644) == nil { // the folder exists
			if err := os.Chtimes(path, time.Unix(0, 0), time.Unix(0, 0)); err != nil {
				t.Fatal(err)
			}
		}
	}
	index := filepath.Join(home, "index.json")
	b, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	v := decoded(t, b).(map[string]any)
	entries := v["manifests"].([]any)
	var named map[string]any
	for _, e := range entries {
		if a := e.(map[string]any)["annotations"].(map[string]any); a[ocispec.AnnotationRefName] != nil {
			named = e.(map[string]any)
		}
	}
	for _, ref := range []string{"a" + evil, "a$(touch pwned)", "a`id`", "a;id", "a b", "-a", "a:" + evil, "evil.host" +
		evil + "/a:b"} {
		entry := maps.Clone(named)
		entry["annotations"] = map[string]any{ocispec.AnnotationRefName: ref, "org.ingotml.model.type": evil}
		entries = append(entries, entry)
	}
	v["manifests"] = entries
	if b, err = json.Marshal(v); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(index, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if shown, code := onTerminal(t, "fsck"); code != 1 || !strings.Contains(shown, `\u001b[2J`) {
		t.Errorf("exit code %d, shown as %q", code, shown)
	}
	for _, args := range [][]string{{"ls"}, {"show", "a"}, {"df"}, {"prune", "--dry-run"}, {"fsck", "--repair"}} {
		onTerminal(t, args...)
	}
	// Completions contain no character that a shell would interpret.
	for _, args := range [][]string{{"__complete", "show", ""}, {"__complete", "run", "a"},
		{"__completeNoDesc", "rm", "evil"}} {
		shown, _ := onTerminal(t, args...)
		var out, errs bytes.Buffer
		cmd.Main(args, nil, &out, &errs)
		if strings.ContainsAny(out.String(), "$`; \\") || firstControl(out.String()) != "" ||
			strings.Contains(out.String(), "evil") {
			t.Errorf("%q offers %q", args, out.String())
		}
		if args[2] != "evil" && !strings.HasPrefix(shown, "a\r\n") {
			t.Errorf("%q offers %q", args, shown)
		}
	}
}
