package storetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
)

// childEnv makes the test binary a child process of the tests, which runs that job.
const childEnv = "INGOT_TEST_CHILD"

// ChildArg represents a secret in the arguments of a child process.
const ChildArg = "--password=s3cret-of-the-child"

// Main runs the tests of a package, or a job if the process is a child.
func Main(m *testing.M) {
	if job := os.Getenv(childEnv); job != "" {
		if err := runChild(job, os.Getenv("INGOT_HOME")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Jobs are additional jobs. The tests of a package add theirs.
var Jobs = map[string]func(ctx context.Context, s *store.Store, arg string) error{}

// Child returns a process that runs a job on a store.
func Child(t *testing.T, job, root string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], ChildArg)
	// The race detector delays the exit of a process by a second.
	cmd.Env = append(os.Environ(), childEnv+"="+job, "INGOT_HOME="+root, "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	return cmd
}

func runChild(job, root string) error {
	ctx := context.Background()
	s, err := store.Open(root)
	if err != nil {
		return err
	}
	job, arg, _ := strings.Cut(job, ":")
	if work := Jobs[job]; work != nil {
		return work(ctx, s, arg)
	}
	switch job {
	case "put": // models of its own, and one that all processes write
		for i := range 5 {
			for _, name := range []string{fmt.Sprintf("p%s/m%d", arg, i), "common"} {
				if err := CreateModel(ctx, s, name, "shared by all", name+arg, fmt.Sprint(arg, i)); err != nil {
					return err
				}
			}
		}
	case "mix": // concurrent writers and collections
		store.Waits(50*time.Millisecond, time.Minute)(s)
		for i := range 12 {
			if err := CreateModel(ctx, s, fmt.Sprintf("m%d", rand.N(4)), "constant", fmt.Sprint("some", rand.N(6)),
				fmt.Sprint(arg, i)); err != nil {
				return err
			}
			if err := collect.Remove(ctx, s, manifest.Name{Path: fmt.Sprintf("m%d", rand.N(4))}); err != nil &&
				!errors.Is(err, manifest.ErrNotFound) &&
				!errors.Is(err, manifest.ErrBusy) {
				return err
			}
		}
	case "secret": // print the secret, and create it if necessary
		secret, err := s.Secret(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("%x\n", secret)
	case "hold": // hold the lock until stdin is closed
		if _, err := s.Lock(ctx); err != nil {
			return err
		}
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin)
	case "churn": // all operations, until killed
		fmt.Println("ready")
		for i := 0; ; i++ {
			name := fmt.Sprintf("m%d", i%3)
			if err := CreateModel(ctx, s, name, fmt.Sprint("version", i), "constant", strings.Repeat("x", i%5000)); err != nil {
				return err
			}
			if i%2 == 1 {
				if err := collect.Remove(ctx, s, manifest.Name{Path: fmt.Sprintf("m%d", (i+1)%3)}); err != nil &&
					!errors.Is(err, manifest.ErrNotFound) {
					return err
				}
			}
		}
	}
	return nil
}

// CreateModel stores a model like a command does: it takes the lock, writes the blobs, then sets the name.
func CreateModel(ctx context.Context, s *store.Store, name string, texts ...string) error {
	release, err := s.Lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	var img manifest.Image
	for i, text := range texts {
		w, err := s.NewBlob(ctx)
		if err != nil {
			return err
		}
		defer w.Abort()
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
		d, n, err := w.Commit()
		if err != nil {
			return err
		}
		img.Layers = append(img.Layers, manifest.Layer{Kind: manifest.KindTensor, Name: string(rune('a' + i)), Digest: d,
			Size: n})
	}
	_, err = s.Put(ctx, manifest.Name{Path: name}, img)
	return err
}

// CheckTidy checks the store and that no temporary files are left.
func CheckTidy(t *testing.T, s *store.Store) {
	t.Helper()
	for _, dir := range []string{"ingest", "holders"} {
		if got := Files(t, s, dir); len(got) > 0 {
			t.Errorf("files left in %s: %v", dir, got)
		}
	}
	CheckStore(t, s)
}

// StartReady starts a child and waits until it prints "ready".
func StartReady(t *testing.T, cmd *exec.Cmd) io.Reader {
	t.Helper()
	cmd.Stderr = new(strings.Builder)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() }) // no effect after Wait
	r := bufio.NewReader(stdout)
	if line, err := r.ReadString('\n'); line != "ready\n" {
		cmd.Wait()
		t.Fatalf("child printed %q (%v): %v", line, err, cmd.Stderr)
	}
	return r
}

// RunChildren runs a job in several processes concurrently.
func RunChildren(t *testing.T, n int, job, root string) {
	t.Helper()
	var children []*exec.Cmd
	for i := range n {
		cmd := Child(t, fmt.Sprintf("%s:%d", job, i), root)
		cmd.Stderr = new(strings.Builder)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, cmd)
	}
	for _, cmd := range children {
		if err := cmd.Wait(); err != nil {
			t.Errorf("child: %v: %v", err, cmd.Stderr)
		}
	}
}
