package ranks_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/loopback"
)

// machines are where the ranks of a group run: each in a network namespace of its own, with one address on a bridge.
// Where the kernel forbids namespaces, all share the loopback interface.
type machines struct {
	names string // prefix of the namespaces; the rest is the address. Empty: the loopback interface
}

// newMachines makes size namespaces, one per rank. The bridge between them is in one of its own, so that it neither
// reaches this machine's network nor is reached from it.
func newMachines(t *testing.T, size int) (m machines) {
	t.Helper()
	m.names = fmt.Sprintf("ingot-ranks-%d-", os.Getpid())
	bridge := m.names + "bridge"
	add := func(name string) error {
		if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			return fmt.Errorf("%w %s", err, out)
		}
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
		return nil
	}
	if err := add(bridge); err != nil {
		t.Logf("the ranks share the loopback interface: network namespaces need root and a kernel that allows them: %v", err)
		return machines{}
	}
	lines := []string{"-n " + bridge + " link add br0 type bridge", "-n " + bridge + " link set br0 up"}
	for rank := range size {
		name := m.names + m.address(rank)
		if err := add(name); err != nil {
			t.Fatal(err)
		}
		lines = append(lines,
			fmt.Sprintf("-n %s link add port%d type veth peer name eth0 netns %s", bridge, rank, name),
			fmt.Sprintf("-n %s link set port%d master br0 up", bridge, rank),
			fmt.Sprintf("-n %s addr add %s/24 dev eth0", name, m.address(rank)),
			"-n "+name+" link set eth0 up", "-n "+name+" link set lo up",
		)
	}
	for _, line := range lines {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v %s", line, err, out)
		}
	}
	return m
}

// address returns the address of a rank's machine.
func (m machines) address(rank int) string {
	if m.names == "" {
		return "127.0.0.1"
	}
	return fmt.Sprintf("10.214.0.%d", rank+1)
}

// command returns a command that runs on a rank's machine.
func (m machines) command(rank int, path string, args ...string) *exec.Cmd {
	if m.names == "" {
		return exec.Command(path, args...)
	}
	return exec.Command("ip", append([]string{"netns", "exec", m.names + m.address(rank), path}, args...)...)
}

// ring returns the content of the file that MLX_HOSTFILE names.
func (m machines) ring(t *testing.T, size int) []byte {
	t.Helper()
	if m.names == "" {
		ports, err := loopback.ReserveAll(size)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(ports.Close)
		return ports.Hosts()
	}
	hosts := make([][]string, size)
	for rank := range hosts {
		hosts[rank] = []string{m.address(rank) + ":7700"}
	}
	b, err := json.Marshal(hosts)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// remoteShell stands for ssh: its arguments are a host and words of a command line. Ranks are on different hosts for
// Open MPI only if these have different names.
const remoteShell = `#!/bin/sh
host=$1
shift
exec ip netns exec "%s$host" unshare --uts sh -c 'hostname "$0" && exec sh -c "$*"' "$host" "$@"
`

// mpirun returns arguments that place the ranks.
func (m machines) mpirun(t *testing.T, dir string, size int) []string {
	t.Helper()
	if m.names == "" {
		return []string{"--oversubscribe"}
	}
	shell := filepath.Join(dir, "shell")
	if err := os.WriteFile(shell, fmt.Appendf(nil, remoteShell, m.names), 0o700); err != nil {
		t.Fatal(err)
	}
	var hosts []string
	for rank := range size {
		hosts = append(hosts, m.address(rank)+":1")
	}
	return []string{"--host", strings.Join(hosts, ","), "--prtemca", "plm_ssh_agent", shell}
}
