package serve

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/mlx/engine"
	"github.com/ingotml/ingot/worker/tunnel"
	"github.com/spf13/cobra"
)

// workerPort is the port of workers if an address has none.
const workerPort = "7710"

// tokenFlag names the file with the token that machines share.
type tokenFlag struct{ file string }

func (t *tokenFlag) add(c *cobra.Command) {
	c.Flags().StringVar(&t.file, "token-file", "", "`file` with the token that all machines share")
}

// read returns the token.
func (t tokenFlag) read() (tunnel.Token, error) {
	if t.file == "" {
		return tunnel.Token{}, cli.Usagef("--token-file FILE is missing; " +
			"make a token with `openssl rand -hex 32 > FILE` and copy it to all machines")
	}
	text, err := firstLine(t.file)
	if err != nil {
		return tunnel.Token{}, fmt.Errorf("--token-file: %w", err)
	}
	token, err := tunnel.NewToken(text)
	if err != nil {
		return token, fmt.Errorf("--token-file %s: %w", t.file, err)
	}
	return token, nil
}

// firstLine reads the first line of a file, which may be a pipe.
func firstLine(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := place.GuardedFile(f); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(io.LimitReader(f, limits.APIKey+2)).ReadString('\n') // plus a line end of two bytes
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	text := strings.TrimSpace(line)
	switch {
	case len(text) > limits.APIKey || !strings.HasSuffix(line, "\n") && len(line) > limits.APIKey:
		return "", fmt.Errorf("%s: the first line is longer than %d bytes; it is not a token", path, limits.APIKey)
	case text == "":
		return "", fmt.Errorf("%s: the first line is empty; it must be the token", path)
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return "", fmt.Errorf("%s: the first line contains spaces, control characters or non-ASCII characters; "+
			"it is not a token", path)
	}
	return text, nil
}

// workersFlag names the machines that compute a model together with this one.
type workersFlag struct {
	list  []string
	token tokenFlag
}

func (w *workersFlag) add(c *cobra.Command) {
	c.Flags().StringSliceVar(&w.list, "workers", nil, "`host[:port],...` of the workers that share each model")
	w.token.add(c)
}

// addresses returns the workers' addresses, by rank from 1.
func (w workersFlag) addresses() ([]string, error) {
	var all []string
	for _, text := range w.list {
		address := strings.TrimSpace(text)
		host, port, err := net.SplitHostPort(address)
		var wrong *net.AddrError
		if errors.As(err, &wrong) && strings.Contains(wrong.Err, "missing port") {
			host, port, err = strings.Trim(address, "[]"), workerPort, nil
		}
		if err != nil || host == "" {
			return nil, cli.Usagef("--workers: %q is not an address such as 10.0.0.2:%s", text, workerPort)
		}
		all = append(all, net.JoinHostPort(host, port))
	}
	return all, nil
}

// read returns the workers' addresses and the token.
func (w workersFlag) read() ([]string, tunnel.Token, error) {
	addresses, err := w.addresses()
	if err != nil {
		return nil, tunnel.Token{}, err
	}
	token, err := w.token.read()
	return addresses, token, err
}

// args returns the flags for a model's process, which connects to the workers by itself.
func (w workersFlag) args() ([]string, error) {
	all, err := w.addresses()
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		if w.token.file != "" {
			return nil, cli.Usagef("--token-file needs --workers")
		}
		return nil, nil
	}
	if _, err := w.token.read(); err != nil {
		return nil, err
	}
	file, err := filepath.Abs(w.token.file)
	return []string{"--workers", strings.Join(all, ","), "--token-file", file}, err
}

// tunnelSelf returns what this machine proves and says to others.
func tunnelSelf(token tunnel.Token, e *engine.Engine) tunnel.Self {
	return tunnel.Self{
		Token:    token,
		Versions: tunnel.Versions{Program: programVersion(), Engine: fmt.Sprintf("MLX %s (%s)", e.Version, e.Flavour)},
	}
}

// programVersion identifies this program to other machines, also between releases.
func programVersion() string {
	v := cli.CurrentVersion()
	return v.Version + " (commit " + v.Commit[:min(len(v.Commit), 12)] + ")"
}
