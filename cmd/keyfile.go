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

// envAPIKey holds the API key of a server, for the server and for its clients.
const envAPIKey = "INGOT_API_KEY"

// keyFlag chooses a server's API key: from a file, or else from the environment.
type keyFlag struct{ file string }

func (k *keyFlag) add(c *cobra.Command, whose string) {
	c.Flags().StringVar(&k.file, "api-key-file", "", "`file` with the "+whose+" (default $"+envAPIKey+")")
}

// read returns the key, or "" if there is none.
func (k keyFlag) read(a *app) (string, error) {
	if k.file == "" {
		return os.Getenv(envAPIKey), nil
	}
	key, mode, err := readKey(k.file)
	if err != nil {
		return "", fmt.Errorf("--api-key-file: %w", err)
	}
	if mode.IsRegular() && mode.Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		a.note("note: other users may read the key in %s (mode %04o); restrict it with `chmod 600`", k.file, mode.Perm())
	}
	return key, nil
}

// readKey reads the first line of a file, which may be a pipe, and returns it with the file's mode.
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
	line, err := bufio.NewReader(io.LimitReader(f, limits.APIKey+2)).ReadString('\n') // plus a line end of two bytes
	if err != nil && !errors.Is(err, io.EOF) {
		return "", 0, err
	}
	key := strings.TrimSpace(line)
	switch {
	case len(key) > limits.APIKey || !strings.HasSuffix(line, "\n") && len(line) > limits.APIKey:
		return "", 0, fmt.Errorf("%s: the first line is longer than %d bytes; it is not a key", path, limits.APIKey)
	case key == "":
		return "", 0, fmt.Errorf("%s: the first line is empty; it must be the key", path)
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return "", 0, fmt.Errorf("%s: the first line contains spaces, control characters or non-ASCII characters; "+
			"it is not a key", path)
	}
	return key, info.Mode(), nil
}
