package ollama

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/servertest"
	"github.com/ingotml/ingot/server/wire"
)

// fullDiskEnv marks the child process of TestUploadOnFullDisk, which has small disks. Its value is the folder for them.
const fullDiskEnv = "INGOT_TEST_FULL_DISK"

// noDisk is the child's error message if it cannot mount a disk.
const noDisk = "no small disk: "

// TestUploadOnFullDisk: an upload of unknown length that fills the disk fails with one clear error and leaves no file,
// and the server keeps serving. It runs in a mount namespace with small disks. If the system forbids that, it sets a
// limit on the existing disk.
func TestUploadOnFullDisk(t *testing.T) {
	if dir := os.Getenv(fullDiskEnv); dir != "" {
		t.Run("margin", func(t *testing.T) {
			mountDisk(t, dir, limits.UploadFreeSpace+32<<20)
			fillByUploading(t, 0)
		})
		t.Run("full", func(t *testing.T) {
			mountDisk(t, dir, 32<<20)
			fillWhileUploading(t, dir)
		})
		return
	}
	c := exec.Command(os.Args[0], "-test.run=^TestUploadOnFullDisk$", "-test.v")
	c.Env = append(os.Environ(), fullDiskEnv+"="+t.TempDir())
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit), bytes.Contains(out, []byte(noDisk)):
		t.Logf("using the system's disk, since no small disk can be mounted (%v): %s", err, out)
		var st unix.Statfs_t
		if err := unix.Statfs(t.TempDir(), &st); err != nil {
			t.Fatal(err)
		}
		fillByUploading(t, int64(st.Bavail)*st.Bsize-16<<20)
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	case bytes.Count(out, []byte("--- PASS: ")) != 3:
		t.Errorf("some subtests did not run: %s", out)
	}
}

// mountDisk mounts a tmpfs of this size at dir and puts the test's temporary files there.
func mountDisk(t *testing.T, dir string, size int64) {
	t.Helper()
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if err == nil {
		err = unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprint("size=", size))
	}
	if err != nil {
		t.Fatal(noDisk, err)
	}
	t.Cleanup(func() { // runs after the server's cleanups, which were registered later
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
		servertest.Forget() // twoModels' files were on this disk
	})
	t.Setenv("TMPDIR", dir)
	t.Setenv("GOTMPDIR", dir) // which TempDir prefers
}

// wantNoSpace checks the error of an upload on a full disk, and that it left no file.
func (f *fixture) wantNoSpace(t *testing.T, slow slowBlob) {
	t.Helper()
	status, text, _ := slow.response(t)
	var e wire.ErrorJSON
	if err := json.Unmarshal([]byte(text), &e); err != nil || status != 507 ||
		!strings.Contains(e.Error, f.Options().Store.Root()) || !strings.Contains(e.Error, "free some space") {
		t.Errorf("status %d: %s", status, text)
	}
	if got := f.left(t, "*"); len(got) > 0 {
		t.Errorf("remaining files: %v", got)
	}
	f.Has(t, "GET", "/healthz", "", 200)
	f.Has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","stream":false}`, 200, "Hello")
}

// fillByUploading uploads until the server rejects more. keepFree 0 means the server's default.
func fillByUploading(t *testing.T, keepFree int64) {
	f := serve(t, func(o *server.Options) { o.KeepFree = keepFree })
	slow := f.beginBlob(t, digest.FromString("x").String())
	sent := make(chan int)
	go func() {
		piece, n := strings.Repeat("x", 1<<20), 0
		for ; n < 256; n++ {
			if _, err := fmt.Fprintf(slow, "%x\r\n%s\r\n", len(piece), piece); err != nil {
				break
			}
		}
		slow.send("")
		sent <- n
	}()
	f.wantNoSpace(t, slow)
	slow.Close()
	if n := <-sent; n < 4 {
		t.Errorf("only %d MiB were sent", n)
	}
}

// fillWhileUploading fills the disk between two of the server's checks.
func fillWhileUploading(t *testing.T, dir string) {
	f := serve(t, func(o *server.Options) { o.KeepFree = 1 })
	slow := f.beginBlob(t, digest.FromString("x").String())
	slow.send(strings.Repeat("x", 1<<20))
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if list := f.left(t, "sending-*"); len(list) == 2 {
			if info, err := os.Stat(list[0]); err == nil && info.Size() == 1<<20 {
				break
			}
		}
		if time.Now().After(end) {
			t.Fatal("the upload does not start")
		}
	}
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 64<<20), 0o644); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	slow.send(strings.Repeat("x", 1<<20))
	f.wantNoSpace(t, slow)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	f.Has(t, "POST", "/api/blobs/"+digest.FromString("small").String(), "small", 201)
}
