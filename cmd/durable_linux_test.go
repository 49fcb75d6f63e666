package cmd_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ingotml/ingot/internal/limits/runtest"
)

// needStrace skips the test unless runtest.Trace demands it. The test then fails if processes cannot be traced.
func needStrace(t *testing.T) {
	t.Helper()
	runtest.Trace.Only(t)
	out, err := exec.Command("strace", append(slices.Clone(straceFlags), "-o", os.DevNull, "true")...).CombinedOutput()
	if err == nil {
		return
	}
	runtest.Trace.Need(t, fmt.Errorf(
		"strace does not work: install it (apt-get install strace, or interop/setup.sh) and allow ptrace: %w %s", err, out))
}

// underStrace wraps a command so that strace logs it.
func underStrace(t *testing.T, c *exec.Cmd, log string) *exec.Cmd {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Fatal(err)
	}
	c.Args = slices.Concat([]string{"strace"}, straceFlags, []string{"-o", log, "--", c.Path}, c.Args[1:])
	c.Path = strace
	return c
}

// realTemp returns a temporary folder by its resolved path, as strace prints it.
func realTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// recording is the log of a command that changed a store.
type recording struct {
	home   string // the store, top/store
	top    string
	before *disk // contents of top before the command
	calls  []traced
	args   []string // arguments of the command, if it can be repeated
}

// record runs work, which must trace a command on top/store into the log.
func record(t *testing.T, top string, work func(log string)) recording {
	t.Helper()
	r := recording{home: filepath.Join(top, "store"), top: top}
	var err error
	if r.before, err = readDisk(top); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	work(log)
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if r.calls, err = parseStrace(f); err != nil {
		t.Fatal(err)
	}
	return r
}

// replay applies the calls of the log to a model. It calls step before each call that changes something.
func (r recording) replay(d *disk, step func(c traced) error) error {
	type event struct {
		line int
		c    traced
		end  bool
	}
	var events []event
	for _, c := range r.calls {
		events = append(events, event{c.begin, c, false}, event{c.end, c, true})
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.line - b.line })
	for _, e := range events {
		var err error
		if e.end {
			err = d.end(e.c)
		} else if d.begin(e.c); e.c.ret >= 0 {
			err = step(e.c)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", e.line, err)
		}
	}
	return nil
}

// published matches the names in a store that promise complete contents: blobs, the store's index and layout, blobs of
// unfinished creates, and uploads.
var published = regexp.MustCompile(strings.ReplaceAll(
	`^(blobs/sha256/HEX|index\.json|oci-layout|ingest/create-HEX/HEX|ingest/upload-HEX)$`, "HEX", "[0-9a-f]{64}"))

// forever are the folders of a store whose names must be durable when a command has ended.
var forever = []string{".", "blobs", "blobs/sha256", "ingest"}

// checkOrder returns the violations of the order that makes crashes harmless:
//   - All writes to a file, and its mode, are synced before the file gets a published name.
//   - The names of blobs are synced before index.json, which refers to them, is replaced.
//   - index.json and its name are synced before a blob is removed.
//   - All published names are synced when the command has ended.
func (r recording) checkOrder(t *testing.T) (wrong []string, renamed int) {
	t.Helper()
	d := r.before.copy()
	in := func(path string) string {
		rel, err := filepath.Rel(r.home, path)
		if err != nil {
			return path
		}
		return rel
	}
	// unsynced lists the published names in a folder of the store that a crash could lose.
	unsynced := func(dir string) (names []string) {
		n := d.find(filepath.Join(r.home, dir))
		if n == nil {
			return nil
		}
		for name, file := range n.now.entries {
			path := filepath.Join(dir, name)
			if n.kept.entries[name] != file && (published.MatchString(path) || slices.Contains(forever, path)) {
				names = append(names, path)
			}
		}
		return names
	}
	err := r.replay(d, func(c traced) error {
		switch c.name {
		case "renameat", "renameat2", "linkat":
			from, err := c.path(0, 1)
			if err != nil {
				return err
			}
			to, err := c.path(2, 3)
			if err != nil || !published.MatchString(in(to)) {
				return err
			}
			renamed++
			if n := d.find(from); n == nil || n.dirty() {
				wrong = append(wrong, fmt.Sprintf("line %d: %s gets its name before it is synced", c.begin, in(to)))
			}
			if in(to) == "index.json" {
				for _, name := range slices.Concat(unsynced("blobs"), unsynced("blobs/sha256")) {
					wrong = append(wrong, fmt.Sprintf("line %d: index.json is replaced before the name of %s is synced",
						c.begin, name))
				}
			}
		case "unlinkat":
			path, err := c.path(0, 1)
			if err != nil {
				return err
			}
			if strings.HasPrefix(in(path), "blobs/sha256/") && len(unsynced(".")) > 0 {
				wrong = append(wrong, fmt.Sprintf("line %d: %s is removed before %v is synced",
					c.begin, in(path), unsynced(".")))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range forever {
		for _, name := range unsynced(dir) {
			wrong = append(wrong, fmt.Sprintf("at the end the name of %s is not synced", name))
		}
	}
	if home := filepath.Base(r.home); d.root.now.entries[home] != d.root.kept.entries[home] {
		wrong = append(wrong, "at the end the store's folder is not synced")
	}
	return wrong, renamed
}

// checkModel checks that the model ends with the files on the real disk, so that the log is complete.
func (r recording) checkModel(t *testing.T) {
	t.Helper()
	d := r.before.copy()
	if err := r.replay(d, func(traced) error { return nil }); err != nil {
		t.Fatal(err)
	}
	real, err := readDisk(r.top)
	if err != nil {
		t.Fatal(err)
	}
	var compare func(path string, a, b *node)
	compare = func(path string, a, b *node) {
		switch {
		case a == nil || b == nil || (a.now.entries == nil) != (b.now.entries == nil):
			t.Errorf("%s is in the model: %t, on the disk: %t", path, a != nil, b != nil)
		case a.now.entries == nil && (!bytes.Equal(a.now.data, b.now.data) || a.now.mode != b.now.mode):
			t.Errorf("%s has %d bytes, %v in the model, %d bytes, %v on the disk",
				path, len(a.now.data), a.now.mode, len(b.now.data), b.now.mode)
		default:
			for name, n := range a.now.entries {
				compare(path+"/"+name, n, b.now.entries[name])
			}
			for name, n := range b.now.entries {
				if a.now.entries[name] == nil {
					compare(path+"/"+name, nil, n)
				}
			}
		}
	}
	compare("", d.root, real.root)
}

// TestSyncOrder traces commands that change a store. It checks that a crash of the machine at any moment leaves a
// consistent store, and that the changes are durable when the command has ended.
func TestSyncOrder(t *testing.T) {
	needStrace(t)
	model := filepath.Join("..", "testdata", "models", "gemma4_assistant-dense")
	run := func(t *testing.T, top string, args ...string) recording {
		r := record(t, top, func(log string) {
			out, err := underStrace(t, command(filepath.Join(top, "store"), args...), log).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %v\n%s", args, err, out)
			}
		})
		r.args = args
		return r
	}
	check := func(t *testing.T, r recording, least int, want ...string) {
		t.Helper()
		r.checkModel(t)
		wrong, renamed := r.checkOrder(t)
		if renamed < least {
			t.Errorf("%d files got names, want %d", renamed, least)
		}
		more, states := r.checkCrashes(t, false, want...)
		if states < 5 {
			t.Errorf("only %d states after crashes", states)
		}
		if wrong = append(wrong, more...); len(wrong) > 0 {
			t.Errorf("%d faults, such as\n%s", len(wrong), strings.Join(wrong[:min(len(wrong), 20)], "\n"))
		}
		t.Logf("%d calls, %d files got names, %d states after crashes", len(r.calls), renamed, states)
	}
	top, peer := realTemp(t), newTestRegistry(t.Cleanup)
	home := filepath.Join(top, "store")
	image := peer.addr + "/team/model:v1"
	t.Run("create", func(t *testing.T) {
		r := run(t, top, "create", "first", model)
		check(t, r, 30, "", "first")
		r.checkAgain(t, "first")
		r.checkFinds(t, "first")
	})
	t.Run("create again", func(t *testing.T) { // in an existing store
		check(t, run(t, top, "create", "second", model, "-q", "int8"), 10, "first", "first second")
	})
	t.Run("pull", func(t *testing.T) {
		ingot(t, home, "push", "first", image)
		bare := realTemp(t) // a layout of another tool, without a folder for blobs
		for name, text := range map[string]string{
			"oci-layout": `{"imageLayoutVersion":"1.0.0"}`, "index.json": `{"schemaVersion":2,"manifests":[]}`,
		} {
			if err := os.MkdirAll(filepath.Join(bare, "store"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(bare, "store", name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		r := run(t, bare, "pull", image)
		check(t, r, 30, "", "team/model")
		r.checkAgain(t, "team/model")
	})
	t.Run("rm", func(t *testing.T) {
		r := run(t, top, "rm", "first")
		check(t, r, 1, "first second", "second")
		removed := slices.ContainsFunc(r.calls, func(c traced) bool {
			path, err := c.path(0, min(1, len(c.args)-1))
			return err == nil && c.name == "unlinkat" && strings.Contains(path, "/blobs/sha256/")
		})
		if !removed {
			t.Error("no blob was removed")
		}
	})
	t.Run("upload", func(t *testing.T) {
		needEngine(t) // the server does not start without one
		check(t, record(t, top, func(log string) { uploadTraced(t, home, log) }), 1, "second")
	})
}

// uploadTraced starts a server, uploads a file to it, and stops it.
func uploadTraced(t *testing.T, home, log string) {
	t.Helper()
	s := serveCommand(t, home, underStrace(t, command(home, "serve", "--host", "127.0.0.1:0"), log))
	text := strings.Repeat("a file ", 20_000)
	url := fmt.Sprintf("http://%s/api/blobs/sha256:%x", s.addr, sha256.Sum256([]byte(text)))
	response, err := http.Post(url, "", struct{ io.Reader }{strings.NewReader(text)}) // a body of unknown length
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		t.Errorf("status %d", response.StatusCode)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", s.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.Fields(string(children))[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = s.Wait() // another test checks the exit status
}

// checkFinds holds that the checks find what is wrong: without the syncs of one kind in the log there are faults.
func (r recording) checkFinds(t *testing.T, want string) {
	t.Helper()
	for what, kind := range map[string]*regexp.Regexp{
		"gets its name before it is synced":               regexp.MustCompile(`/ingest/create-[^/]*/blob-`),
		"index.json gets its name before it is synced":    regexp.MustCompile(`/ingest/index.json-`),
		"index.json is replaced before the name of blobs": regexp.MustCompile(`/blobs/sha256$`),
		"at the end the name of index.json":               regexp.MustCompile(`/store$`),
	} {
		broken := r
		broken.calls = slices.DeleteFunc(slices.Clone(r.calls), func(c traced) bool {
			if c.name != "fsync" {
				return false
			}
			_, path := c.fd(0)
			return kind.MatchString(path)
		})
		wrong, _ := broken.checkOrder(t)
		if len(broken.calls) == len(r.calls) || !strings.Contains(strings.Join(wrong, "\n"), what) {
			t.Errorf("without syncs of %v: %q", kind, wrong)
		}
		if !strings.HasPrefix(what, "index.json is replaced") {
			continue // one violation is enough
		}
		if wrong, _ := broken.checkCrashes(t, true, "", want); len(wrong) == 0 {
			t.Errorf("without syncs of %v, crashes do no harm", kind)
		}
	}
}
