package engine

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ingotml/ingot/internal/child"
	"golang.org/x/sys/cpu"
)

// host describes the machine. Tests construct their own.
type host struct {
	os, arch string
	macOS    int                              // major version; 0 if unknown or not macOS
	root     string                           // the folder that contains dev, proc, sys and lib
	avx512   bool                             // the processor has what isa.cc requires of AVX-512
	glibc    func(ctx context.Context) string // "2.36", or "" if unknown
}

func thisHost() host {
	x := cpu.X86
	return host{
		os: runtime.GOOS, arch: runtime.GOARCH, macOS: macOSVersion(), root: "/", glibc: glibcVersion,
		avx512: x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VL && x.HasAVX512DQ && x.HasAVX512VNNI,
	}
}

func (h host) platform() string { return h.os + "/" + h.arch }

func (h host) libExt() string {
	if h.os == "darwin" {
		return ".dylib"
	}
	return ".so"
}

// The driver versions that each CUDA's libraries require, with minor version compatibility:
// https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
const (
	driverCUDA12 = 525
	driverCUDA13 = 580
)

// detect returns the best flavour for the machine, and the reason.
func (h host) detect() (Flavour, string) {
	if h.os == "darwin" {
		return Metal, "macOS"
	}
	if !h.exists("dev/nvidiactl") {
		return CPU, "no NVIDIA device (/dev/nvidiactl is absent)"
	}
	version, major := h.nvidiaDriver()
	switch {
	case major >= driverCUDA13:
		return CUDA13, "NVIDIA driver " + version
	case major >= driverCUDA12:
		return CUDA12, "NVIDIA driver " + version + ", CUDA 13 needs " + strconv.Itoa(driverCUDA13)
	case major > 0:
		return CPU, "NVIDIA driver " + version + " is too old, CUDA 12 needs " + strconv.Itoa(driverCUDA12)
	}
	return CPU, "there is an NVIDIA device, but its driver version cannot be read; force cuda12 or cuda13 to use it"
}

var driverVersion = regexp.MustCompile(`\b(\d{3,4})\.\d+(\.\d+)?\b`)

// nvidiaDriver returns the version of the driver. It is in /proc if the kernel module is visible. In sandboxes that
// only pass the device through, it is taken from the file name of the driver's library.
func (h host) nvidiaDriver() (string, int) {
	for _, name := range []string{"proc/driver/nvidia/version", "sys/module/nvidia/version"} {
		data, err := os.ReadFile(filepath.Join(h.root, name))
		if err != nil {
			continue
		}
		if v, major := parseDriver(string(data)); major > 0 {
			return v, major
		}
	}
	for _, dir := range []string{
		"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "usr/local/nvidia/lib64",
	} {
		names, _ := filepath.Glob(filepath.Join(h.root, dir, "libcuda.so.*"))
		for _, name := range names {
			if v, major := parseDriver(filepath.Base(name)); major > 0 {
				return v, major
			}
		}
	}
	return "", 0
}

func parseDriver(s string) (string, int) {
	m := driverVersion.FindStringSubmatch(s)
	if m == nil {
		return "", 0
	}
	major, _ := strconv.Atoi(m[1])
	return m[0], major
}

func (h host) exists(name string) bool {
	_, err := os.Stat(filepath.Join(h.root, name))
	return err == nil
}

// chooseFlavour sets the flavour, requested or detected, and the platform tags that pip may accept.
func (s *setup) chooseFlavour() error {
	s.flavour, s.why = s.forced, "asked for"
	if s.forced == "" {
		s.flavour, s.why = s.host.detect()
	} else if s.Flavour == "" {
		s.why = EnvFlavour
	}
	if s.lock == nil {
		var err error
		if s.lock, err = lockOf(s.flavour); err != nil {
			return err
		}
	}
	tags := s.lock.platforms[s.host.platform()]
	if len(tags) == 0 {
		have := availableOn(s.host.platform())
		if len(have) == 0 {
			return failf(ErrUnsupported, "MLX %s has no build for %s: models can be created, pushed and pulled here, not run",
				Version, s.host.platform())
		}
		return failf(ErrUnsupported, "MLX %s has no flavour %s for %s, only %s",
			Version, s.flavour, s.host.platform(), strings.Join(have, ", "))
	}
	if s.host.os == "darwin" && s.host.macOS > 0 {
		oldest := tags[len(tags)-1]
		isTooNew := func(tag string) bool { return tagVersion(tag) > s.host.macOS }
		if tags = slices.DeleteFunc(slices.Clone(tags), isTooNew); len(tags) == 0 {
			return failf(ErrUnsupported, "MLX %s needs macOS %d or newer, this is %d",
				Version, tagVersion(oldest), s.host.macOS)
		}
	}
	s.platform = tags
	return nil
}

// tagVersion returns the version in a platform tag: 15 for macosx_15_0_arm64, 35 for manylinux_2_35_x86_64.
func tagVersion(tag string) int {
	parts := strings.Split(tag, "_")
	i := 1
	if parts[0] == "manylinux" {
		i = 2
	}
	if len(parts) <= i {
		return 0
	}
	v, _ := strconv.Atoi(parts[i])
	return v
}

// checkHost rejects a machine whose C library is older than the wheels require. pip does not check this when it is
// given a platform. The first tag is the newest that the wheels use.
func (s *setup) checkHost(ctx context.Context) error {
	if s.host.os != "linux" || s.host.glibc == nil {
		return nil
	}
	need := tagVersion(s.platform[0])
	have := s.host.glibc(ctx)
	if have == "" {
		if musl, _ := filepath.Glob(filepath.Join(s.host.root, "lib", "ld-musl-*.so.1")); len(musl) > 0 {
			return failf(ErrUnsupported, "MLX %s needs glibc 2.%d or newer, this system has musl: "+
				"use a glibc distribution, such as Debian 12 or Ubuntu 22.04", Version, need)
		}
		return nil
	}
	if minor, err := strconv.Atoi(strings.TrimPrefix(have, "2.")); err == nil && minor < need {
		return failf(ErrUnsupported, "MLX %s needs glibc 2.%d or newer, this system has %s: "+
			"use a newer distribution, such as Debian 12 or Ubuntu 22.04", Version, need, have)
	}
	return nil
}

// glibcVersion runs getconf, which is part of glibc.
func glibcVersion(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := child.Command(ctx, child.Environment(child.System), "getconf", "GNU_LIBC_VERSION").Output()
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "glibc ")
}
