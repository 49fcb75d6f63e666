package credentials

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/configfile"

	"github.com/ingotml/ingot/internal/limits/place"
)

// source is a file with credentials, or its content.
type source struct {
	place    string // as errors name it
	path     string // empty: content
	content  []byte
	given    bool // for this command
	podman   bool // of podman
	expected bool // its absence is a problem
	legacy   bool // the whole file has the form of "auths"
}

// podmanVariable names podman's file.
const podmanVariable = "REGISTRY_AUTH_FILE"

// sources lists where credentials are, in order of precedence: docker's, then podman's
// (https://github.com/containers/image/blob/main/docs/containers-auth.json.5.md). podman also reads docker's file,
// which is in the list already.
func sources() []source {
	var list []source
	if text := os.Getenv(configfile.DockerEnvConfigKey); text != "" {
		list = append(list, source{place: configfile.DockerEnvConfigKey, content: []byte(text)})
	}
	return append(list, files()...)
}

// files lists the files with credentials.
func files() []source {
	podman := podmanFiles()
	path, err := dockerFile()
	if err != nil {
		return podman
	}
	docker := source{place: path, path: path}
	if podmanFirst() {
		return append(podman, docker)
	}
	return append([]source{docker}, podman...)
}

// podmanFirst reports whether a variable names podman's file and none docker's: somebody has chosen it, whatever is in
// docker's usual place.
func podmanFirst() bool {
	return os.Getenv(podmanVariable) != "" && os.Getenv(config.EnvOverrideConfigDir) == ""
}

// loginFile returns the file that a login is stored in, which need not exist: the first that is searched.
func loginFile() (source, error) {
	if podmanFirst() {
		s := podmanFiles()[0]
		s.expected = false
		return s, nil
	}
	path, err := dockerFile()
	return source{place: path, path: path}, err
}

// dockerFile returns the path of docker's config.json, which need not exist.
func dockerFile() (string, error) {
	dir := os.Getenv(config.EnvOverrideConfigDir)
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".docker")
	}
	return filepath.Join(dir, config.ConfigFileName), nil
}

func podmanFiles() []source {
	if file := os.Getenv(podmanVariable); file != "" {
		return []source{{place: file, path: file, podman: true, expected: true}}
	}
	var paths []string
	switch dir := os.Getenv("XDG_RUNTIME_DIR"); {
	case runtime.GOOS != "linux":
	case dir != "":
		paths = append(paths, filepath.Join(dir, "containers", "auth.json"))
	default:
		paths = append(paths, filepath.Join("/run/containers", strconv.Itoa(os.Getuid()), "auth.json"))
	}
	home, _ := os.UserHomeDir()
	paths = append(paths, filepath.Join(cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")),
		"containers", "auth.json"))
	var list []source
	for _, path := range slices.Compact(paths) {
		if filepath.IsAbs(path) {
			list = append(list, source{place: path, path: path, podman: true})
		}
	}
	if home != "" {
		old := filepath.Join(home, ".dockercfg")
		list = append(list, source{place: old, path: old, legacy: true})
	}
	return list
}

// logout returns what `ingot logout` removes a key of this source by, or an empty string.
func (s source) logout(key string) string {
	if s.path == "" || s.given || s.legacy {
		return ""
	}
	return strings.Replace(key, dockerHub, "docker.io", 1)
}

// read reads the source. What is wrong with it are problems; the rest of it is returned.
func (s source) read() (authFile, []error) {
	content := s.content
	if s.path != "" {
		var err error
		switch content, err = s.readFile(); {
		case errors.Is(err, fs.ErrNotExist) && !s.expected:
			return authFile{}, nil
		case err != nil:
			return authFile{}, []error{err}
		}
	}
	f, err := parseAuthFile(content, s.legacy)
	if err != nil {
		return f, []error{fmt.Errorf("%s: %w", s.place, err)}
	}
	return f, nil
}

// readFile reads the file. One that the user named may be a pipe.
func (s source) readFile() ([]byte, error) {
	if s.given || s.expected {
		return os.ReadFile(s.path)
	}
	return place.ReadFile(s.path, MaxFile)
}

// MaxFile limits the content that [Keychain.With] takes, in bytes.
const MaxFile = 1 << 20

// With returns a keychain that searches content first: an auth file in docker's form, or USER:PASSWORD for one
// repository (host/path) or host, which keys must hold alone. place is where it comes from.
func (k *Keychain) With(content []byte, place string, keys []string) (*Keychain, error) {
	size := len(content)
	content = bytes.TrimSpace(bytes.TrimPrefix(content, byteOrderMark))
	if !bytes.HasPrefix(content, []byte("{")) {
		user, password, ok := bytes.Cut(content, []byte(":"))
		switch {
		case size > MaxFile, !ok || len(user) == 0 || len(password) == 0 || bytes.ContainsAny(content, "\r\n\x00"):
			return nil, fmt.Errorf("%s must hold USER:PASSWORD in one line, or JSON in the form of docker's config.json", place)
		case len(keys) != 1:
			return nil, fmt.Errorf("%s holds USER:PASSWORD, which is for one registry, and the command names %s: "+
				"use JSON in the form of docker's config.json, which names each", place, several(keys))
		}
		var err error
		if content, err = entryFor(keys[0], string(user), string(password)); err != nil {
			return nil, err
		}
	}
	if _, err := parseAuthFile(content, false); err != nil {
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	given := append(slices.Clip(k.given), source{place: place, content: content, given: true})
	return &Keychain{given: given}, nil
}

func several(keys []string) string {
	if len(keys) == 0 {
		return "none"
	}
	return strings.Join(keys, " and ")
}
