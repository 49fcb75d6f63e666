package registrytest

import (
	"os"
	"path/filepath"
	"testing"
)

// DockerHome creates a folder for docker's config.json with this content; empty means no file. No credential helper is
// installed.
func DockerHome(t *testing.T, content string) (file string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", filepath.Join(dir, "docker"))
	t.Setenv("PATH", filepath.Join(dir, "bin"))
	file = filepath.Join(dir, "docker", "config.json")
	if content != "" {
		os.Mkdir(filepath.Dir(file), 0o700)
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return file
}
