package interop

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// ingot is the program under test, built from the module above.
var ingot string

func TestMain(m *testing.M) { os.Exit(main(m)) }

func main(m *testing.M) int {
	if slices.Contains(os.Args, mcpArg) {
		return serveMCP(os.Stdin, os.Stdout)
	}
	dir, err := os.MkdirTemp("", "ingot-interop-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	ingot = filepath.Join(dir, "ingot")
	build := exec.Command("go", "build", "-o", ingot, "./cmd/ingot")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build ingot: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// checkpoint returns the folder of a small checkpoint.
func checkpoint(t *testing.T, name string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "testdata", "models", name))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// tool finds a program of another project, in .bin, among programs or on the PATH. A missing one fails the test.
func tool(t *testing.T, name string) string {
	t.Helper()
	for _, dir := range []string{".bin", programs()} {
		if path, err := filepath.Abs(filepath.Join(dir, name)); dir != "" && err == nil {
			if _, err := os.Stat(path); err == nil {
				return path
			}
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is not installed: run interop/setup.sh (most programs: with --full)", name)
	}
	return path
}

// programs is a folder with zot, modctl and kit, which setup.sh cannot install, or "". Tests of them need it.
func programs() string { return os.Getenv("INGOT_TEST_PROGRAMS") }

// user has a home, a store and docker credentials of their own.
type user struct {
	t    *testing.T
	home string
	more []string // further environment variables
}

func newUser(t *testing.T) *user {
	t.Helper()
	return &user{t: t, home: t.TempDir()}
}

// store returns the folder of the user's models, which is an OCI image layout.
func (u *user) store() string { return filepath.Join(u.home, "store") }

func (u *user) env() []string {
	env := []string{
		"HOME=" + u.home,
		"INGOT_HOME=" + u.store(),
		"DOCKER_CONFIG=" + filepath.Join(u.home, "docker"),
		"XDG_RUNTIME_DIR=" + u.home, // for skopeo's credentials
		"COSIGN_PASSWORD=",
	}
	env = append(env, u.more...)
	for _, name := range []string{"PATH", "TMPDIR", "GOMAXPROCS", "LANG"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// try runs a program in the user's home and returns its output.
func (u *user) try(stdin, program string, args ...string) (stdout, stderr string, err error) {
	return u.tryIn(u.home, stdin, program, args...)
}

func (u *user) tryIn(dir, stdin, program string, args ...string) (stdout, stderr string, err error) {
	c := exec.CommandContext(u.t.Context(), program, args...)
	c.Env, c.Dir, c.Stdin = u.env(), dir, strings.NewReader(stdin)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err = c.Run()
	return strings.TrimSuffix(out.String(), "\n"), errs.String(), err
}

// run runs another project's program, which must succeed, and returns its output.
func (u *user) run(name string, args ...string) string {
	u.t.Helper()
	return u.runIn(u.home, name, args...)
}

// runIn is run in a folder.
func (u *user) runIn(dir, name string, args ...string) string {
	u.t.Helper()
	out, errs, err := u.tryIn(dir, "", tool(u.t, name), args...)
	if err != nil {
		u.t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errs)
	}
	return out
}

// ingot runs ingot, which must succeed, and returns its output.
func (u *user) ingot(args ...string) string {
	u.t.Helper()
	return u.ingotWith("", args...)
}

func (u *user) ingotWith(stdin string, args ...string) string {
	u.t.Helper()
	out, errs, err := u.try(stdin, ingot, args...)
	if err != nil {
		u.t.Fatalf("ingot %s: %v\n%s%s", strings.Join(args, " "), err, out, errs)
	}
	return out
}

// ingotFails runs ingot, which must fail, and returns the last line of its error output.
func (u *user) ingotFails(args ...string) string {
	u.t.Helper()
	out, errs, err := u.try("", ingot, args...)
	if err == nil {
		u.t.Fatalf("ingot %s succeeded: %s", strings.Join(args, " "), out)
	}
	lines := strings.Split(strings.TrimSuffix(errs, "\n"), "\n")
	last := lines[len(lines)-1]
	if !strings.HasPrefix(last, "ingot: ") {
		u.t.Errorf("ingot %s: the error is %q", strings.Join(args, " "), errs)
	}
	return last
}

// create creates a model from a small checkpoint and returns its digest.
func (u *user) create(name, model string, flags ...string) string {
	u.t.Helper()
	out := u.ingot(append([]string{"create", name, checkpoint(u.t, model)}, flags...)...)
	_, digest, ok := strings.Cut(out, "@")
	if !ok {
		u.t.Fatalf("ingot create printed %q", out)
	}
	return digest
}

// manifest returns the verbatim manifest of a model in the user's store, read like any OCI image layout.
func (u *user) manifest(name string) string {
	u.t.Helper()
	for _, d := range layoutIndex(u.t, u.store()).Manifests {
		if d.Annotations[ocispec.AnnotationRefName] == name {
			return layoutBlob(u.t, u.store(), d)
		}
	}
	u.t.Fatalf("no %s in the store", name)
	return ""
}

func equal(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %s, want %s", what, got, want)
	}
}
