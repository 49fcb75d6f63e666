package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// machine returns a host with the given files.
func machine(t *testing.T, platform string, files map[string]string) host {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	goos, arch, _ := strings.Cut(platform, "/")
	return host{os: goos, arch: arch, root: root}
}

const (
	device   = "dev/nvidiactl"
	driver   = "proc/driver/nvidia/version"
	openNVRM = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (root@x)  Tue Sep " +
		"23 2025\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
	olderNVRM = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.124.06  Wed Feb 26 01:55:39 UTC 2025\n"
	oldNVRM   = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2 14:37:44 UTC 2024\n"
)

func TestChooseFlavour(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, platform string
		files          map[string]string
		env            string
		want           Flavour
		why            string
	}{
		{"plain Linux", "linux/amd64", nil, "", CPU, "no NVIDIA device"},
		{"plain Linux on ARM", "linux/arm64", nil, "", CPU, "no NVIDIA device"},
		{"open driver", "linux/amd64", map[string]string{device: "", driver: openNVRM}, "", CUDA13, "580.95.05"},
		{"Grace", "linux/arm64", map[string]string{device: "", driver: openNVRM}, "", CUDA13, "580.95.05"},
		{"older driver", "linux/amd64", map[string]string{device: "", driver: olderNVRM}, "", CUDA12, "570.124.06"},
		{"old driver", "linux/amd64", map[string]string{device: "", driver: oldNVRM}, "", CPU, "470.256.02 is too old"},
		{"driver without device, as in a container", "linux/amd64", map[string]string{driver: openNVRM}, "", CPU,
			"no NVIDIA device"},
		{"device, version in sysfs", "linux/amd64",
			map[string]string{device: "", "sys/module/nvidia/version": "580.65.06\n"}, "", CUDA13, "580.65.06"},
		{"device, version in the library's name", "linux/amd64",
			map[string]string{device: "", "usr/lib/x86_64-linux-gnu/libcuda.so.1": "",
				"usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01": ""}, "", CUDA12, "535.183.01"},
		{"device, no version", "linux/amd64", map[string]string{device: ""}, "", CPU, "cannot be read"},
		{"Mac", "darwin/arm64", nil, "", Metal, "macOS"},
		{"requested", "linux/amd64", map[string]string{device: "", driver: openNVRM}, "cpu", CPU, EnvFlavour},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, err := newSetup(emptyWorld(t, machine(t, test.platform, test.files), EnvFlavour+"="+test.env))
			if err != nil {
				t.Fatal(err)
			}
			if s.flavour != test.want || !strings.Contains(s.why, test.why) {
				t.Errorf("%s (%s), want %s (%s)", s.flavour, s.why, test.want, test.why)
			}
		})
	}
}

func TestUnsupported(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		platform string
		flavour  Flavour
		macOS    int
		contains []string
	}{
		{"windows/amd64", "", 0, []string{"no build for windows/amd64"}},
		{"darwin/amd64", "", 0, []string{"no build for darwin/amd64"}},
		{"linux/riscv64", "", 0, []string{"no build for linux/riscv64"}},
		{"linux/amd64", Metal, 0, []string{"no flavour metal for linux/amd64", "cpu, cuda12, cuda13"}},
		{"darwin/arm64", CPU, 15, []string{"no flavour cpu for darwin/arm64", "only metal"}},
		{"linux/amd64", "tpu", 0, []string{`"tpu"`, "cpu, metal, cuda12, cuda13"}},
		{"linux/amd64", "../x", 0, []string{`"../x"`}},
		{"darwin/arm64", "", 13, []string{"macOS 14", "this is 13"}},
	} {
		h := machine(t, test.platform, nil)
		h.macOS = test.macOS
		opts := emptyWorld(t, h)
		opts.Flavour = test.flavour
		_, err := Find(opts)
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s %s: %v, want ErrUnsupported", test.platform, test.flavour, err)
			continue
		}
		for _, words := range test.contains {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%q does not contain %q", err, words)
			}
		}
	}
}

// Each macOS version gets the newest wheel that it can load: pip prefers the tag that it is given first.
func TestMacTags(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		macOS int
		want  []string
	}{
		{14, []string{"macosx_14_0_arm64"}},
		{15, []string{"macosx_15_0_arm64", "macosx_14_0_arm64"}},
		{26, []string{"macosx_26_0_arm64", "macosx_15_0_arm64", "macosx_14_0_arm64"}},
		{27, []string{"macosx_26_0_arm64", "macosx_15_0_arm64", "macosx_14_0_arm64"}},
	} {
		h := machine(t, "darwin/arm64", nil)
		h.macOS = test.macOS
		s, err := newSetup(emptyWorld(t, h))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.platform, test.want) {
			t.Errorf("macOS %d: %v, want %v", test.macOS, s.platform, test.want)
		}
	}
}

func TestCheckHost(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, glibc string
		files       map[string]string
		contains    string // of the error; "" if the host is accepted
	}{
		{"as new as the wheels", "2.35", nil, ""},
		{"newer", "2.41", nil, ""},
		{"older", "2.31", nil, "glibc 2.35 or newer, this system has 2.31"},
		{"unknown", "", nil, ""},
		{"musl", "", map[string]string{"lib/ld-musl-x86_64.so.1": ""}, "musl"},
	} {
		h := machine(t, "linux/amd64", test.files)
		h.glibc = func(context.Context) string { return test.glibc }
		s, err := newSetup(emptyWorld(t, h))
		if err != nil {
			t.Fatal(err)
		}
		err = s.checkHost(t.Context())
		if test.contains == "" && err != nil || test.contains != "" &&
			(!errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), test.contains)) {
			t.Errorf("%s: %v, want %q", test.name, err, test.contains)
		}
	}
}

func TestThisHost(t *testing.T) {
	h := thisHost()
	if h.os == "linux" && h.exists("usr/bin/getconf") && h.glibc(t.Context()) != "" &&
		!strings.HasPrefix(h.glibc(t.Context()), "2.") {
		t.Errorf("glibc %q", h.glibc(t.Context()))
	}
	if h.os == "darwin" && h.macOS < 11 {
		t.Errorf("macOS %d", h.macOS)
	}
}
