// Package child starts the programs that ingot runs for its own work: Python, compilers, credential helpers, and
// ingot itself.
//
// Contract: a child knows no more than it needs (see [Allowed]), and nothing in the folder where the user stands is run
// or loaded. A child starts in a folder that holds nothing, its program is found in absolute folders alone, and its
// environment names no relative place to load code from. What the user named by a relative path, such as CXX=./g++, is
// still found. A rule of the repository keeps every other package from starting programs, but for the coding clients of
// package launch, which work in the user's folder.
package child

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Cmd is an exec.Cmd that never runs in the caller's folder. Where Dir is empty, Run, Output and CombinedOutput make
// a folder for the child that only this user can enter, and remove it when the child has ended. Start uses Root,
// which needs no removal.
type Cmd struct{ *exec.Cmd }

// Command prepares a child that is killed when ctx ends. The program is found as by Look. Its environment is environ
// as Environ cleans it; nil is all of this process's, secrets included. A program that is not there is an error of the
// method that starts it.
func Command(ctx context.Context, environ []string, program string, args ...string) *Cmd {
	if environ == nil {
		environ = os.Environ()
	}
	path, err := Look(environ, program)
	if err != nil {
		path = program
	}
	c := exec.CommandContext(ctx, path, args...)
	c.Env = Environ(environ)
	if err != nil {
		c.Err = &exec.Error{Name: program, Err: err}
	}
	return &Cmd{c}
}

// Look gives the absolute path of a program. A name is searched in the absolute folders of environ's PATH; a path,
// relative ones included, is what the user wrote and taken as it is.
func Look(environ []string, program string) (string, error) {
	if strings.ContainsRune(program, '/') || strings.ContainsRune(program, filepath.Separator) {
		path, err := exec.LookPath(program)
		if err != nil {
			return "", err
		}
		return filepath.Abs(path)
	}
	for _, dir := range filepath.SplitList(Getenv(environ, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue // the caller's folder is not where tools come from
		}
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// Root is a folder in which only the system's owner can write, for children that live longer than a call. Nobody
// would remove a folder of their own if both ends were killed.
func Root() string {
	if volume := filepath.VolumeName(os.Getenv("SystemRoot")); volume != "" {
		return volume + string(filepath.Separator)
	}
	return string(filepath.Separator)
}

// Start is exec.Cmd's.
func (c *Cmd) Start() error {
	if c.Dir == "" {
		c.enter(Root())
	}
	return c.Cmd.Start()
}

// Run is exec.Cmd's.
func (c *Cmd) Run() error {
	_, err := c.inside(func() ([]byte, error) { return nil, c.Cmd.Run() })
	return err
}

// Output is exec.Cmd's.
func (c *Cmd) Output() ([]byte, error) { return c.inside(c.Cmd.Output) }

// CombinedOutput is exec.Cmd's.
func (c *Cmd) CombinedOutput() ([]byte, error) { return c.inside(c.Cmd.CombinedOutput) }

// inside runs the child in a folder of its own, unless it has one.
func (c *Cmd) inside(run func() ([]byte, error)) (out []byte, err error) {
	if c.Dir != "" || c.Err != nil {
		c.enter(c.Dir)
		return run()
	}
	dir, err := os.MkdirTemp("", "ingot-child-") // of mode 0700
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("make a working folder for %s: %w; TMPDIR names another place for it", c.Path, err)
	}
	defer func() {
		if removed := os.RemoveAll(dir); err == nil && removed != nil {
			err = fmt.Errorf("remove the working folder of %s: %w", c.Path, removed)
		}
	}()
	c.enter(dir)
	return run()
}

// enter sets the child's folder. exec.Cmd leaves PWD alone where it is given an environment.
func (c *Cmd) enter(dir string) {
	c.Dir = dir
	c.Env = append(c.Env, "PWD="+dir)
}
