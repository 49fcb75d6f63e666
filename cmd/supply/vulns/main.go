// Command vulns reports the known vulnerabilities that ingot's code reaches, and fails if there is one:
//
//	go run ./cmd/supply/vulns [PACKAGE]...
//
// It runs govulncheck, which go.mod pins, against the Go vulnerability database. That is a module: the version in
// database.go comes from the module proxy with its sum checked, so that the check needs no other host and says the same
// everywhere. INGOT_VULNDB=https://vuln.go.dev asks today's database instead.
//
// The standard library is that of the toolchain in go.mod, which releases are built with. exceptions.txt lists what is
// reached and yet accepted.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "vulns:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, packages []string, out io.Writer) error {
	accepted, err := parseExceptions(exceptionsText)
	if err != nil {
		return err
	}
	toolchain, err := wantedToolchain(ctx)
	if err != nil {
		return err
	}
	address := os.Getenv("INGOT_VULNDB")
	if address == "" {
		if address, err = database(ctx); err != nil {
			return err
		}
		if note := ageNote(databaseVersion, time.Now()); note != "" {
			fmt.Fprintln(out, "note:", note)
		}
	}
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	found, err := govulncheck(ctx, toolchain, address, packages)
	if err != nil {
		return err
	}
	if v := runtime.Version(); v != toolchain {
		fmt.Fprintf(out, "note: checked as built with %s, which go.mod names; %s here is not what releases are built with\n",
			toolchain, v)
	}
	for _, e := range accepted {
		fmt.Fprintf(out, "accepted since %s: %s: %s\n", e.decided.Format(time.DateOnly), e.id, e.reason)
	}
	problems := judge(found, accepted)
	reached := 0
	for _, v := range found {
		if v.reached() {
			reached++
		}
	}
	fmt.Fprintf(out, "known vulnerabilities in modules of the build: %d; reached by the code: %d\n", len(found), reached)
	return errors.Join(problems...)
}

// wantedToolchain is the one that go.mod names, which is newer than the language version if that has fixes.
func wantedToolchain(ctx context.Context) (string, error) {
	out, err := command(ctx, nil, "mod", "edit", "-json")
	if err != nil {
		return "", err
	}
	var mod struct{ Go, Toolchain string }
	if err := json.Unmarshal(out, &mod); err != nil {
		return "", fmt.Errorf("go mod edit: %w", err)
	}
	if mod.Toolchain == "" {
		return "go" + mod.Go, nil
	}
	return mod.Toolchain, nil
}

func govulncheck(ctx context.Context, toolchain, address string, packages []string) ([]vulnerability, error) {
	args := slices.Concat([]string{"tool", "govulncheck", "-format", "json", "-db", address}, packages)
	out, err := command(ctx, []string{"GOVERSION=" + toolchain}, args...)
	if err != nil {
		return nil, err
	}
	return parse(strings.NewReader(string(out)))
}

// command runs the go command in this folder.
func command(ctx context.Context, environ []string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, "go", args...)
	c.Env = append(os.Environ(), environ...)
	out, err := c.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}
