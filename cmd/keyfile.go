package cmd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/ingotml/ingot/limits"
	"github.com/spf13/cobra"
)

// envAPIKey has the key of a server that wants one, for the server and for those who ask it.
const envAPIKey = "INGOT_API_KEY"

// keyFlag says where a server's API key is: in a file, else in the environment.
type keyFlag struct{ file string }

func (k *keyFlag) add(c *cobra.Command, whose string) {
	c.Flags().StringVar(&k.file, "api-key-file", "", "`file` whose first line is the "+whose+" (default $"+envAPIKey+")")
}

// read gives the key, "" where there is none.
func (k keyFlag) read(a *app) (string, error) {
	if k.file == "" {
		return os.Getenv(envAPIKey), nil
	}
	key, mode, err := readKey(k.file)
	if err != nil {
		return "", fmt.Errorf("--api-key-file: %w", err)
	}
	if mode.IsRegular() && mode.Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		a.note("note: other users may read the key in %s (mode %04o); `chmod 600` keeps it yours", k.file, mode.Perm())
	}
	return key, nil
}

// readKey reads the first line of a file, which may be a pipe, and gives its mode too.
func readKey(path string) (string, fs.FileMode, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	line, err := bufio.NewReader(io.LimitReader(f, limits.APIKey+2)).ReadString('\n') // a line may end with two bytes
	if err != nil && !errors.Is(err, io.EOF) {
		return "", 0, err
	}
	key := strings.TrimSpace(line)
	switch {
	case len(key) > limits.APIKey || !strings.HasSuffix(line, "\n") && len(line) > limits.APIKey:
		return "", 0, fmt.Errorf("%s: the first line is longer than %d bytes; it is not a key", path, limits.APIKey)
	case key == "":
		return "", 0, fmt.Errorf("%s: the first line is empty; it has to be the key", path)
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return "", 0, fmt.Errorf("%s: the first line holds spaces, control characters or letters beyond ASCII; it is not a key", path)
	}
	return key, info.Mode(), nil
}
