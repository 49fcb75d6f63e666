package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// names are the clients' names in the JSON file.
var names = []string{"ingot", "crane", "skopeo", "oras_go"}

func flagName(name string) string { return strings.TrimSuffix(name, "_go") }

// client is a program with its default concurrency: crane moves 4 blobs at once, oras-go 3, ingot 5, skopeo 6.
type client struct{ name, program string }

type command struct {
	args []string
	env  []string
}

func (c client) push(s source, to string) command {
	switch c.name {
	case "ingot":
		return command{[]string{c.program, "push", s.name, to}, []string{"INGOT_HOME=" + s.dir}}
	case "crane":
		return command{[]string{c.program, "push", s.dir, to}, nil}
	case "skopeo":
		return command{[]string{c.program, "--insecure-policy", "copy", "--dest-tls-verify=false", "oci:" + s.dir,
			"docker://" + to}, nil}
	}
	return command{[]string{c.program, "oci:" + s.dir + "#" + s.name, to}, nil}
}

func (c client) pull(from, home string) command {
	to := c.pulled(home)
	switch c.name {
	case "ingot":
		return command{[]string{c.program, "pull", from}, []string{"INGOT_HOME=" + to}}
	case "crane":
		return command{[]string{c.program, "pull", "--format", "oci", from, to}, nil}
	case "skopeo":
		return command{[]string{c.program, "--insecure-policy", "copy", "--src-tls-verify=false", "docker://" + from, "oci:" +
			to + ":v1"}, nil}
	}
	return command{[]string{c.program, from, "oci:" + to + "#v1"}, nil}
}

// pulled is the layout that a client pulls into.
func (c client) pulled(home string) string { return filepath.Join(home, "pulled") }

// cost is the wall time of a run, and the CPU time of the client alone.
type cost struct{ passed, processor time.Duration }

// time runs a program with its own home folder.
func (b *bench) time(ctx context.Context, c command, home string) (cost, error) {
	sync()
	p := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	p.Env = append([]string{"HOME=" + home, "DOCKER_CONFIG=" + home, "XDG_RUNTIME_DIR=" + home, "PATH=" +
		os.Getenv("PATH")}, c.env...)
	var out bytes.Buffer
	p.Stdout, p.Stderr = &out, &out
	if b.output {
		p.Stdout, p.Stderr = os.Stderr, os.Stderr
	}
	begun := time.Now()
	if err := p.Run(); err != nil {
		return cost{}, fmt.Errorf("%s: %w\n%s", strings.Join(c.args, " "), err, out.String())
	}
	return cost{time.Since(begun), p.ProcessState.UserTime() + p.ProcessState.SystemTime()}, nil
}
