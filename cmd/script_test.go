package cmd_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/engine"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(withProgram{m}, map[string]func(){"docker-credential-folder": credentialHelper})
}

// withProgram runs the tests with ingot on the PATH, as a program of its own. As usual with testscript it would be the
// test binary under another name, but olareg's initialization hashes a password there: 80 ms in each of a thousand
// processes.
type withProgram struct{ tests *testing.M }

func (w withProgram) Run() int {
	dir, err := buildProgram()
	defer func() { _ = os.RemoveAll(dir) }()
	if err == nil {
		err = os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return w.tests.Run()
}

// buildProgram builds testdata/ingot in a new folder on the disk of the checkout. On a tmpfs, where temporary files may
// be, all of the program's pages would count as its memory.
func buildProgram() (dir string, err error) {
	cache, err := filepath.Abs(filepath.Join("..", ".cache"))
	if err == nil {
		err = os.MkdirAll(cache, 0o755)
	}
	if err == nil {
		dir, err = os.MkdirTemp(cache, "test-program-")
	}
	if err != nil {
		return "", err
	}
	args := slices.Concat([]string{"build", "-ldflags=-w", "-o", dir}, buildFlags(), []string{"./testdata/ingot"})
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return dir, fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return dir, nil
}

// buildFlags returns the flags that this test was built with and that change ingot's code.
func buildFlags() (flags []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, s := range info.Settings {
		if s.Key == "-race" || s.Key == "-tags" {
			flags = append(flags, s.Key+"="+s.Value)
		}
	}
	return flags
}

// TestScripts runs the scripts of testdata/script. Each has its own home and store, and the engine of the user who runs
// the tests. $MODELS, $SOURCES, $REFERENCE and $PICTURES are folders of testdata. $REGISTRY is the address of an empty
// registry, $DENIED that of a registry that denies access, and $LEADING that of a registry that redirects to a private
// address. $BIN is a folder with only this program.
func TestScripts(t *testing.T) {
	testdata, err := filepath.Abs(filepath.Join("..", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	installed, why := installedEngine()
	if runtest.Engine.On() { // else scripts without an engine run
		runtest.Engine.Need(t, why)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("INGOT_HOME", filepath.Join(e.WorkDir, "store"))
			e.Setenv("INGOT_ENGINE", installed)
			for _, name := range []string{"INGOT_NO_SYNC", mlx.EnvCPUThreads} { // of the run
				e.Setenv(name, os.Getenv(name))
			}
			e.Setenv("MODELS", filepath.Join(testdata, "models"))
			e.Setenv("SOURCES", filepath.Join(testdata, "sources"))
			e.Setenv("REFERENCE", filepath.Join(testdata, "reference"))
			e.Setenv("PICTURES", filepath.Join(testdata, "pictures"))
			e.Setenv("DOCKER_CONFIG", filepath.Join(e.WorkDir, "docker")) // hide the credentials of the user who runs the tests
			e.Setenv("REGISTRY", newTestRegistry(e.Defer).addr)
			e.Setenv("OTHER_REGISTRY", newTestRegistry(e.Defer).addr)
			e.Setenv("DENIED", denied(e.Defer))
			e.Setenv("LEADING", leading(e.Defer))
			if program, err := exec.LookPath("ingot"); err == nil {
				e.Setenv("BIN", filepath.Dir(program))
			}
			return nil
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "engine":
				return why == nil, nil
			case "cgo":
				return !errors.Is(mlx.Available(), mlx.ErrNoCgo), nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"oneline":      oneLine,
			"damage":       damage,
			"newkey":       newKey,
			"authregistry": authRegistry,
			"serving":      serving,
			"hub":          serveHub,
		},
	})
}

// installedEngine returns the folder of the engine, or why there is none.
func installedEngine() (string, error) {
	if err := mlx.Available(); err != nil {
		return "", err
	}
	e, err := engine.Find(engine.Options{})
	if err != nil {
		return "", err
	}
	return e.Dir, nil
}

// oneLine checks that a file, stderr by default, is one line: an error without a stack trace or usage text.
func oneLine(ts *testscript.TestScript, neg bool, args []string) {
	name := "stderr"
	if len(args) > 0 {
		name = args[0]
	}
	text := ts.ReadFile(name)
	if one := strings.Count(text, "\n") == 1 && strings.HasSuffix(text, "\n"); one == neg {
		ts.Fatalf("%s is not one line:\n%s", name, text)
	}
}

// damage damages a file. "damage cut FILE N" truncates it to N bytes, and "damage byte FILE OFFSET VALUE" writes a
// byte. "damage blob FILE" changes the first byte of the store's blob with the file's contents, "damage lose FILE"
// removes that blob, and "damage manifest FILE" removes the blob whose digest the file contains.
func damage(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[1])
	b, err := os.ReadFile(path)
	ts.Check(err)
	var n, v int
	switch args[0] {
	case "manifest":
		ts.Check(os.Remove(filepath.Join(ts.Getenv("INGOT_HOME"), "blobs", "sha256",
			strings.TrimPrefix(strings.TrimSpace(string(b)), "sha256:"))))
		return
	case "blob", "lose":
		path = filepath.Join(ts.Getenv("INGOT_HOME"), "blobs", "sha256", fmt.Sprintf("%x", sha256.Sum256(b)))
		ts.Check(os.Chmod(path, 0o644))
		ts.Check(os.Remove(path))
		if args[0] == "lose" {
			return
		}
		b[0] ^= 1
		ts.Check(os.WriteFile(path, b, 0o444))
		return
	case "cut":
		_, err = fmt.Sscan(args[2], &n)
		ts.Check(err)
		b = b[:n]
	case "byte":
		_, err = fmt.Sscan(args[2]+" "+args[3], &n, &v)
		ts.Check(err)
		b[n] = byte(v)
	default:
		ts.Fatalf("damage %s?", args[0])
	}
	ts.Check(os.Chmod(path, 0o644))
	ts.Check(os.WriteFile(path, b, 0o644))
}
