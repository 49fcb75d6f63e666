package interop

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// packer is another project's way to put a checkpoint's files, or a GGUF file, into a registry.
type packer struct {
	name string
	when func() bool
	gguf bool
	// pack pushes the files of a folder, the GGUF file among them if gguf is set, as the image name.
	pack func(u *user, dir, name string)
}

var packers = []packer{
	{"oras", long, false, func(u *user, dir, name string) {
		u.runIn(dir, "oras-cli", append([]string{"push", "--plain-http", name}, fileNames(u.t, dir)...)...)
	}},
	{"oras-folder", long, false, func(u *user, dir, name string) {
		u.runIn(filepath.Dir(dir), "oras-cli", "push", "--plain-http", "--artifact-type", "application/vnd.example.model",
			name, filepath.Base(dir))
	}},
	{"oras-gguf", long, true, func(u *user, dir, name string) {
		u.runIn(dir, "oras-cli", "push", "--plain-http", name, ggufName)
	}},
	{"model-runner", long, false, func(u *user, dir, name string) {
		u.run("mdltool", "--store-path", filepath.Join(u.home, "models"), "package", "--tag", name, dir)
	}},
	{"model-runner-gguf", long, true, func(u *user, dir, name string) {
		u.run("mdltool", "--store-path", filepath.Join(u.home, "models"), "package", "--tag", name,
			filepath.Join(dir, ggufName))
	}},
	{"modctl", byHand, false, func(u *user, dir, name string) { modctl(u, dir, name, "--raw=true") }},
	{"modctl-tar", byHand, false, func(u *user, dir, name string) { modctl(u, dir, name, "--raw=false") }},
	{"modctl-gguf", byHand, true, func(u *user, dir, name string) { modctl(u, dir, name, "--raw=true") }},
	{"kitops", byHand, false, func(u *user, dir, name string) { kit(u, dir, name, "none") }},
	{"kitops-gzip", byHand, false, func(u *user, dir, name string) { kit(u, dir, name, "gzip") }},
	{"kitops-gguf", byHand, true, func(u *user, dir, name string) { kit(u, dir, name, "none") }},

	// After the specifications of ModelPack and KitOps, because setup.sh cannot install their programs.
	{"modelpack-specified", long, false, func(u *user, dir, name string) { packModelPack(u, dir, name, false) }},
	{"modelpack-specified-tar", long, false, func(u *user, dir, name string) { packModelPack(u, dir, name, true) }},
	{"kitops-specified", long, false, packKit},
	{"kitops-specified-gguf", long, true, packKit},
}

const ggufName = "demo.gguf"

// TestPackers: an image that another program made runs, becomes a model of the store with the digest that its files
// have, and gives its files back.
func TestPackers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	withEngine := []string{"INGOT_ENGINE=" + engine(t)}
	maker := newUser(t)
	maker.more = withEngine
	folder := filepath.Join(maker.home, "demo")
	for _, f := range fileNames(t, checkpoint(t, "demo")) {
		if f != "Modelfile" { // no file of a checkpoint
			writeFile(t, filepath.Join(folder, f), readFile(t, filepath.Join(checkpoint(t, "demo"), f)))
		}
	}
	maker.ingot("create", "folder", folder)
	gguf := filepath.Join(maker.home, "gguf", ggufName)
	if err := os.Mkdir(filepath.Dir(gguf), 0o755); err != nil {
		t.Fatal(err)
	}
	maker.ingot("export", "folder", gguf)
	// What each source says, and the digest of its conversion.
	run := func(u *user, name string) string {
		return u.ingot("run", "--yes", name, "Once upon a time", "--raw", "--temperature", "0", "--max-tokens", "12")
	}
	convert := func(u *user, source string) string {
		_, digest, _ := strings.Cut(u.ingot("create", "converted", source, "-q", "int4"), "@")
		return digest
	}
	says, digest := map[bool]string{}, map[bool]string{}
	for isGGUF, source := range map[bool]string{false: folder, true: gguf} {
		maker.ingot("create", "whole", source)
		says[isGGUF], digest[isGGUF] = run(maker, "whole"), convert(maker, source)
	}
	host := startDistribution(t, "")
	for _, p := range packers {
		if !p.when() {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			dir := folder
			if p.gguf {
				dir = filepath.Dir(gguf)
			}
			u, name := newUser(t), host+"/"+p.name+"/demo:v1"
			u.more = withEngine
			p.pack(u, dir, name)
			equal(t, "what it says", run(u, name), says[p.gguf])
			equal(t, "digest of its conversion", convert(newUser(t), name), digest[p.gguf])
			to := filepath.Join(u.home, "files")
			newUser(t).ingot("extract", name, to) // not what run made of it
			got := fileNames(t, to)
			for _, f := range fileNames(t, dir) {
				at := slices.IndexFunc(got, func(g string) bool { return filepath.Base(g) == f })
				if at < 0 || readFile(t, filepath.Join(to, got[at])) != readFile(t, filepath.Join(dir, f)) {
					t.Errorf("%s is missing in, or differs from, %q", f, got)
				}
			}
			first, one := fileNames(t, dir)[0], filepath.Join(u.home, "one")
			newUser(t).ingot("extract", name, first, one)
			if got := fileNames(t, one); len(got) != 1 || filepath.Base(got[0]) != first {
				t.Errorf("the files by the pattern %s: %q", first, got)
			}
		})
	}
}

// fileNames lists the files below a folder.
func fileNames(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// modctl pushes a folder with modctl, which writes the Modelfile itself.
func modctl(u *user, dir, name string, flags ...string) {
	state := []string{"--storage-dir", filepath.Join(u.home, "m"), "--log-dir", filepath.Join(u.home, "l"),
		"--no-progress"}
	u.run("modctl", append(state, "modelfile", "generate", dir, "-n", "demo", "-O", u.home)...)
	u.run("modctl", slices.Concat(state, []string{"build", "-f", filepath.Join(u.home, "Modelfile"), "-t", name,
		"--plain-http", "--output-remote"}, flags, []string{dir})...)
}

// kit pushes a folder with KitOps' program, which writes the Kitfile itself.
func kit(u *user, dir, name, compression string) {
	copied := filepath.Join(u.home, "kit")
	for _, f := range fileNames(u.t, dir) {
		writeFile(u.t, filepath.Join(copied, f), readFile(u.t, filepath.Join(dir, f)))
	}
	u.run("kit", "init", copied, "--name", "demo", "--desc", "a test")
	u.run("kit", "pack", copied, "-t", name, "--compression", compression)
	u.run("kit", "push", "--plain-http", name)
}
