package convert

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/gguf/gguftest"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/quantize/ggml"
	"github.com/ingotml/ingot/safetensors"
)

// linked puts links in the places of a folder's files: from the path in the folder to the target.
func linked(t *testing.T, dir string, links map[string]string) string {
	t.Helper()
	for name, target := range links {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.RemoveAll(path)); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Skipf("this system lets us make no symbolic links: %v", err)
		}
	}
	return dir
}

// move moves the files of a folder and leaves links to them, each made by the target's absolute path.
func move(t *testing.T, dir, to string, link func(target string) string) {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		target := filepath.Join(to, "blob-"+filepath.Base(path))
		if err := os.Rename(path, target); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(link(target), path); err != nil {
			t.Skipf("this system lets us make no symbolic links: %v", err)
		}
	}
}

// TestLinksOutside imports nothing that a folder's link names elsewhere, unless the user says so.
func TestLinksOutside(t *testing.T) {
	top := t.TempDir()
	private := filepath.Join(top, "private")
	weights := filepath.Join(tiny(t, tinyConfig, 9).write(t, private), "model.safetensors")
	text, object := filepath.Join(top, "text"), filepath.Join(private, "config.json")
	for _, path := range []string{text, filepath.Join(private, "text"), filepath.Join(private, "chat.jinja")} {
		writeFile(t, path, []byte("PRIVATE"))
	}
	for name, links := range map[string]map[string]string{
		"a document":                {"README.md": text},
		"a licence":                 {"LICENSE": text},
		"a device":                  {"LICENSE": "/dev/zero"},
		"the configuration":         {"config.json": object},
		"settings":                  {"generation_config.json": object},
		"a template":                {"chat_template.jinja": text},
		"the environment":           {"chat_template.jinja": "/proc/self/environ"},
		"weights":                   {"model.safetensors": weights},
		"the tokenizer":             {"tokenizer.json": object},
		"a chain":                   {"README.md": "a", "a": "b", "b": text},
		"a relative link":           {"README.md": "../text"},
		"a folder that begins so":   {"README.md": "../model-other/text"},
		"a linked folder and back":  {"README.md": "x/../text", "x": private},
		"a folder":                  {"1_Pooling": private},
		"the root":                  {"1_Pooling": "/"},
		"a folder of templates":     {"additional_chat_templates": private},
		"a file in a linked folder": {"1_Pooling/config.json": "../x/config.json", "x": private},
		"another one's .git":        {"README.md": "../.git/annex/objects/text"},
	} {
		dir := tiny(t, tinyConfig, 1).write(t, filepath.Join(top, "model"))
		for _, file := range []string{"../model-other/text", "../.git/annex/objects/text"} {
			path := filepath.Join(dir, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			writeFile(t, path, []byte("PRIVATE"))
		}
		src, err := source.Open(linked(t, dir, links), source.Options{})
		if err == nil {
			_ = src.Close()
		}
		if !errors.Is(err, safetensors.ErrOutside) || !strings.Contains(err.Error(), "--follow-links") ||
			strings.Contains(err.Error(), "PRIVATE") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLinksInside imports folders of links that lead to the folder or to its blobs, and all others if the user says so.
func TestLinksInside(t *testing.T) {
	store := openStore(t)
	model := func(dir string) string {
		c := tiny(t, tinyConfig, 1)
		c.files["LICENSE"], c.files["1_Pooling/config.json"] = "text", `{"pooling_mode_lasttoken": true}`
		if err := os.MkdirAll(filepath.Join(dir, "1_Pooling"), 0o755); err != nil {
			t.Fatal(err)
		}
		return c.write(t, dir)
	}
	want := mustCreate(t, store, "x", from(model(t.TempDir())), Options{}).Digest
	relative := func(dir string) func(string) string {
		return func(target string) string {
			rel, err := filepath.Rel(dir, target)
			if err != nil {
				t.Fatal(err)
			}
			return rel
		}
	}
	same := func(target string) string { return target }
	for name, c := range map[string]struct {
		dir, blobs        string // below a new folder
		anyLinks, refused bool
	}{
		"a hub's cache":        {dir: "hub/models--a--b/snapshots/abc", blobs: "hub/models--a--b/blobs"},
		"another one's blobs":  {dir: "hub/models--a--b/snapshots/abc", blobs: "hub/models--c/blobs", refused: true},
		"beside a hub's blobs": {dir: "hub/models--a--b/snapshots/abc", blobs: "hub/models--a--b/blobs-x", refused: true},
		"git-annex":            {dir: "repo", blobs: "repo/.git/annex/objects/x"},
		"one by one":           {dir: "scratch", blobs: "disk", refused: true},
		"one by one, as told":  {dir: "scratch", blobs: "disk", anyLinks: true},
	} {
		top := t.TempDir()
		dir := model(filepath.Join(top, filepath.FromSlash(c.dir)))
		to := filepath.Join(top, filepath.FromSlash(c.blobs))
		// blob-config.json is there twice
		pooling := filepath.Join(dir, "1_Pooling")
		kept := filepath.Join(top, "kept")
		if err := os.Rename(pooling, kept); err != nil {
			t.Fatal(err)
		}
		move(t, dir, to, relative(dir))
		if err := os.Rename(kept, pooling); err != nil {
			t.Fatal(err)
		}
		move(t, pooling, filepath.Join(to, "more"), same)
		user := filepath.Join(top, "named-by-the-user")
		if err := os.Symlink(dir, user); err != nil {
			t.Fatal(err)
		}
		for _, folder := range []string{dir, user} {
			got, err := imported(t, folder, c.anyLinks)
			switch {
			case c.refused && !errors.Is(err, safetensors.ErrOutside):
				t.Errorf("%s: %v", name, err)
			case !c.refused && (err != nil || got != want.String()):
				t.Errorf("%s: %s, %v; want %s", name, got, err, want)
			}
		}
	}
}

// imported imports a folder and returns the image's digest.
func imported(t *testing.T, dir string, anyLinks bool) (string, error) {
	t.Helper()
	r, err := Create(t.Context(), openStore(t), modelName(t, "y"), from(dir), Options{AnyLinks: anyLinks})
	return r.Digest.String(), err
}

// TestLinkedGGUF follows the link of a file that the user names, and not those of files beside it.
func TestLinkedGGUF(t *testing.T) {
	model := gguftest.Llama(ggml.F16).Bytes(t)
	disk, dir := t.TempDir(), t.TempDir()
	target := filepath.Join(disk, "model.gguf")
	writeFile(t, target, model)
	linked(t, dir, map[string]string{"x.gguf": target})
	store := openStore(t)
	want := mustCreate(t, store, "x", from(target), Options{}).Digest
	if got := mustCreate(t, store, "x", from(filepath.Join(dir, "x.gguf")), Options{}).Digest; got != want {
		t.Error("a link that the user names: other digest")
	}
	if _, err := imported(t, dir, false); !errors.Is(err, safetensors.ErrOutside) {
		t.Errorf("a folder with a link: %v", err)
	}
	if got, err := imported(t, dir, true); err != nil || got != want.String() {
		t.Errorf("a folder with a link, as told: %v", err)
	}
	writeFile(t, filepath.Join(dir, "own.gguf"), model)
	if _, err := imported(t, dir, false); err == nil {
		t.Error("a model beside a link: the link is not noticed")
	}
}

// TestLinksOfOthers holds for adapters and drafts too.
func TestLinksOfOthers(t *testing.T) {
	private := filepath.Join(t.TempDir(), "private")
	writeFile(t, private, []byte("{}"))
	for _, line := range []string{"ADAPTER ", "DRAFT "} {
		for _, file := range []string{"adapter_config.json", "config.json"} {
			base := tiny(t, tinyConfig, 1).write(t, t.TempDir())
			dir := linked(t, tiny(t, tinyConfig, 1).write(t, t.TempDir()), map[string]string{file: private})
			if line == "ADAPTER " && file == "config.json" || line == "DRAFT " && file != "config.json" {
				continue
			}
			if err := refusal(t, "FROM "+base+"\n"+line+dir); !strings.Contains(err, "--follow-links") {
				t.Errorf("%s%s: %s", line, file, err)
			}
		}
	}
}
