package engine

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestListSources(t *testing.T) {
	t.Parallel()
	sources := fstest.MapFS{}
	for _, name := range []string{"a.cc", "a.h", "b/avx2.cc", "b/avx512.cc", "b/avx512bf16.cc", "b/neon.cc",
		"b/c/avx512vbmi.cc", "b/other.cc", "b/c/avx2.cc", "b/c/b.h", "b_avx2.cc", "notes.txt"} {
		sources[name] = file("x")
	}
	always := []string{"a.cc", "a.h", "b/c/b.h", "b/other.cc", "b_avx2.cc"}
	for target, special := range map[target][]string{
		{"amd64", true}:    {"b/avx2.cc", "b/avx512.cc", "b/avx512bf16.cc", "b/c/avx2.cc", "b/c/avx512vbmi.cc"},
		{"amd64", false}:   {"b/avx2.cc", "b/c/avx2.cc"},
		{"arm64", false}:   {"b/neon.cc"},
		{"riscv64", false}: nil,
	} {
		list, err := listSources(sources, target)
		if err != nil {
			t.Fatal(err)
		}
		want := append(slices.Clone(always), special...)
		slices.Sort(want)
		var names []string
		for _, src := range list {
			names = append(names, src.name)
		}
		if !slices.Equal(names, want) {
			t.Errorf("%v: %v, want %v", target, names, want)
		}
		units, err := makeUnits(list)
		if err != nil {
			t.Fatal(err)
		}
		var inUnits []string
		for _, u := range units {
			inUnits = append(inUnits, u.files...)
			for _, name := range u.files {
				isSpecial := slices.Contains(special, name)
				if isSpecial != slices.Contains(u.flags, "-O3") || isSpecial && path.Base(name) != path.Base(u.files[0]) {
					t.Errorf("%v: unit %s has files %v and flags %v", target, u.name, u.files, u.flags)
				}
			}
		}
		slices.Sort(inUnits)
		want = slices.DeleteFunc(want, func(name string) bool { return strings.HasSuffix(name, ".h") })
		if !slices.Equal(inUnits, want) {
			t.Errorf("%v: units have %v, want %v", target, inUnits, want)
		}
	}
	list, err := listSources(fstest.MapFS{"a.h": file("x")}, target{"amd64", true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := makeUnits(list); err == nil {
		t.Error("sources without a translation unit were accepted")
	}
}

// Matmul's kernels of an instruction set are a unit, and so are its other kernels, the operations, and the rest. The
// largest is first; headers count where they are included.
func TestMakeUnits(t *testing.T) {
	t.Parallel()
	const includes = "#include \"cpu/rows/norm.h\"\n"
	list, err := listSources(fstest.MapFS{
		"ops/a.cc": file("x"), "ops/b.cc": file("x"), "core/call.cc": file("x"), "cpu/node.cc": file("x"),
		"cpu/rows/rows.cc": file("x"), "cpu/rows/avx2.cc": file(includes), "cpu/rows/portable.cc": file("xxxx"),
		"cpu/delta/avx2.cc": file(includes), "cpu/matmul/avx2.cc": file("xxxxx"), "cpu/matmul/matmul.cc": file("x"),
		"cpu/matmul/stream/avx2.cc": file("xxx"),
		"cpu/rows/norm.h":           file("#include \"cpu/rows/norm.h\"\n"), "cpu/matmul/work.h": file("xxxxxxxxxxxxxxxx"),
	}, target{arch: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	units, err := makeUnits(list)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, u := range units {
		got += fmt.Sprintf("%s %d: %s\n", u.name, u.cost, strings.Join(u.files, " "))
	}
	const want = "kernels-avx2 81: cpu/delta/avx2.cc cpu/rows/avx2.cc\nmatmul-avx2 5: cpu/matmul/avx2.cc\n" +
		"bridge 4: core/call.cc cpu/matmul/matmul.cc cpu/node.cc cpu/rows/rows.cc\n" +
		"kernels-portable 4: cpu/rows/portable.cc\nstream-avx2 3: cpu/matmul/stream/avx2.cc\nops 2: ops/a.cc ops/b.cc\n"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestIncludes(t *testing.T) {
	t.Parallel()
	const text = "#include \"a.h\"\n#include <b>\n #include \"c\"\n#include \"d/e.h\"\n#include \"f\n// #include \"g\"\n" +
		"#include \"h.h\""
	if got := strings.Join(includes([]byte(text)), " "); got != "a.h d/e.h h.h" {
		t.Errorf("%s", got)
	}
}

func TestParseCompiler(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		line, want string
		old        bool
	}{
		{"g++ (Debian 12.2.0-14+deb12u1) 12.2.0", "g++ 12.2.0", false},
		{"c++ (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", "g++ 11.4.0", false},
		{"g++ (GCC) 13.2.1 20231011 (Red Hat 13.2.1-4)", "g++ 13.2.1", false},
		{"x86_64-conda-linux-gnu-c++ (conda-forge gcc 12.3.0-3) 12.3.0", "g++ 12.3.0", false},
		{"g++ (Debian 10.2.1-6) 10.2.1 20210110", "g++ 10.2.1", true},
		{"Debian clang version 14.0.6", "clang 14.0.6", false},
		{"Ubuntu clang version 13.0.1-2ubuntu2.2", "clang 13.0.1", true},
		{"Apple clang version 16.0.0 (clang-1600.0.26.4)", "clang 16.0.0", false},
		{"something else", "something else", false},
	} {
		if got, old := parseCompiler(test.line); got != test.want || old != test.old {
			t.Errorf("%q: %q, old %v; want %q, old %v", test.line, got, old, test.want, test.old)
		}
	}
}

func TestCompileError(t *testing.T) {
	t.Parallel()
	c := compiler{command: []string{"/usr/bin/c++"}, version: "g++ 10.2.1", old: true}
	gcc := "In file included from array.cc:1:\nmlx.h:3:10: fatal error: concepts: No such file or directory\n    3 | " +
		"#include <concepts>\n      |          ^~~~~~~~~~\ncompilation terminated.\n"
	for _, test := range []struct {
		name, output string
		kind         error
		contains     []string
	}{
		{"header is missing", gcc, ErrCompile, []string{"mlx.h:3:10: fatal error: concepts", "g++ 10.2.1 (/usr/bin/c++)",
			compilerRemedy}},
		{"GCC 9", "g++: error: unrecognized command line option '-std=c++20'; did you mean '-std=c++2a'?\n",
			errOldCompiler, nil},
		{"clang 9", "error: invalid value 'c++20' in '-std=c++20'\n", errOldCompiler, nil},
		{"clang 4", "error: unknown argument: '-std=c++20'\n", errOldCompiler, nil},
		{"killed", "", ErrCompile, []string{"signal: killed"}},
		{"no word of an error", "Segmentation fault\n", ErrCompile, []string{"Segmentation fault", "signal: killed"}},
		{"many errors", strings.Repeat("a.cc:1:1: error: x\n", 100), ErrCompile, []string{"error: x | a.cc"}},
	} {
		err := compileError(c, test.output, errors.New("signal: killed"))
		if !errors.Is(err, test.kind) {
			t.Errorf("%s: %v is not %v", test.name, err, test.kind)
		}
		if len(err.Error()) > 500 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: not one short line: %q", test.name, err)
		}
		for _, words := range test.contains {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %q does not contain %q", test.name, err, words)
			}
		}
	}
}

func TestPipError(t *testing.T) {
	t.Parallel()
	s := &setup{host: host{os: "linux", arch: "amd64"}, cacheDir: "/cache"}
	const none = "ERROR: Could not find a version that satisfies the requirement mlx-cpu==1 (from versions: none)\n" +
		"ERROR: No matching distribution found for mlx-cpu==1\n"
	for _, test := range []struct {
		name, out, log string
		kind           error
		contains       []string
	}{
		{"no name resolution", none, "Could not fetch URL https://host/simple/mlx-cpu/: connection error: " +
			"HTTPSConnectionPool(host='host', port=443): Max retries exceeded with url: /simple/mlx-cpu/ (Caused by " +
			"NewConnectionError('<x>: Failed to establish a new connection: [Errno -2] Name or service not known')) - " +
			"skipping\n", ErrDownload, []string{"Name or service not known", "INGOT_ENGINE"}},
		{"certificate", none, "Could not fetch URL https://host/simple/mlx-cpu/: There was a problem confirming the ssl " +
			"certificate: HTTPSConnectionPool(host='host', port=443): Max retries exceeded with url: /simple/ (Caused by " +
			"SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed'))) - " +
			"skipping\n", ErrDownload, []string{"CERTIFICATE_VERIFY_FAILED", "certificates"}},
		{"proxy wants a password", none, "Could not fetch URL https://host/simple/mlx-cpu/: connection error: " +
			"HTTPSConnectionPool(host='host', port=443): Max retries exceeded with url: /simple/ (Caused by " +
			"ProxyError('Cannot connect to proxy.', OSError('Tunnel connection failed: 407 Proxy Authentication Required'))) " +
			"- skipping\n", ErrDownload, []string{"407 Proxy Authentication Required", "proxy"}},
		{"broken off", "ERROR: Exception:\npip._vendor.urllib3.exceptions.ReadTimeoutError: " +
			"HTTPSConnectionPool(host='host', port=443): Read timed out.\n", "", ErrDownload, []string{"broke"}},
		{"hash without details", "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n", "",
			ErrHash, []string{"mlx-cpu 1"}},
		{"silent", "", "", ErrDownload, []string{"exit status 2"}},
	} {
		err := s.pipError("mlx-cpu 1", test.out, test.log, errors.New("exit status 2"))
		if !errors.Is(err, test.kind) {
			t.Errorf("%s: %v is not %v", test.name, err, test.kind)
		}
		for _, words := range test.contains {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %q does not contain %q", test.name, err, words)
			}
		}
	}
}
