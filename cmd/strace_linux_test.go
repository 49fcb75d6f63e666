package cmd_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// straceFlags make strace log all threads, file paths, and complete strings in hexadecimal.
var straceFlags = []string{
	"-f", "--seccomp-bpf", "-y", "-xx", "-s", "16777216", "-e", "trace=?" + strings.Join(tracedCalls, ",?"),
}

// tracedCalls are the system calls that change files or make changes durable, on all architectures. strace skips
// unknown ones after a question mark. io_uring is listed to prove that it is not used, since strace cannot see its
// writes.
var tracedCalls = []string{
	"openat", "open", "creat", "lseek", "write", "pwrite64", "writev", "pwritev", "pwritev2",
	"copy_file_range", "sendfile", "splice", "ftruncate", "truncate", "fallocate",
	"fchmod", "chmod", "fchmodat", "fchmodat2",
	"fsync", "fdatasync", "sync_file_range", "syncfs", "sync",
	"rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat",
	"unlink", "unlinkat", "mkdir", "mkdirat", "rmdir",
	"io_uring_setup",
}

// traced is a system call in a log of strace.
type traced struct {
	name       string
	args       []string // as printed
	ret        int64    // -1 after an error
	begin, end int      // lines of the log, from 1
}

// parseStrace parses a log made with straceFlags. Calls are in the order of their ends. Calls without an end, such as
// those of a killed process, are omitted.
func parseStrace(r io.Reader) ([]traced, error) {
	type pending struct {
		text  string
		begin int
	}
	open := map[string]pending{} // by process
	var calls []traced
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 256<<20)
	for n := 1; lines.Scan(); n++ {
		pid, text, ok := strings.Cut(lines.Text(), " ")
		text = strings.TrimLeft(text, " ")
		if !ok {
			return nil, fmt.Errorf("line %d: %q", n, lines.Text())
		}
		if strings.HasPrefix(text, "+++") || strings.HasPrefix(text, "---") {
			continue // an exit or a signal
		}
		begin := n
		if rest, ok := strings.CutPrefix(text, "<... "); ok {
			_, rest, ok = strings.Cut(rest, " resumed>")
			before, known := open[pid]
			if !ok || !known {
				return nil, fmt.Errorf("line %d goes on with nothing: %q", n, text)
			}
			delete(open, pid)
			text, begin = before.text+rest, before.begin
		}
		if before, ok := strings.CutSuffix(text, "<unfinished ...>"); ok {
			open[pid] = pending{before, begin}
			continue
		}
		c, err := parseCall(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		c.begin, c.end = begin, n
		calls = append(calls, c)
	}
	return calls, lines.Err()
}

// parseCall parses "name(args) = result".
func parseCall(text string) (traced, error) {
	name, rest, ok := strings.Cut(text, "(")
	if !ok {
		return traced{}, fmt.Errorf("no call: %q", text)
	}
	c := traced{name: name}
	quoted, path, depth, from := false, false, 0, 0
	for i := range len(rest) {
		switch b := rest[i]; {
		case path:
			path = b != '>'
		case quoted:
			quoted = b != '"' // strings are in hexadecimal, so they contain no quotes
		case b == '"':
			quoted = true
		case b == '<':
			path = true
		case b == '[' || b == '{' || b == '(':
			depth++
		case depth > 0 && (b == ']' || b == '}' || b == ')'):
			depth--
		case depth == 0 && (b == ',' || b == ')'):
			if arg := strings.TrimSpace(rest[from:i]); arg != "" {
				c.args = append(c.args, arg)
			}
			from = i + 1
			if b == ')' {
				return c, c.parseResult(rest[from:])
			}
		}
	}
	return c, fmt.Errorf("no end of the arguments: %q", text)
}

var resultOf = regexp.MustCompile(`^ *= (-?\d+|\?)`)

func (c *traced) parseResult(text string) error {
	m := resultOf.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("no result of %s: %q", c.name, text)
	}
	c.ret = -1
	if m[1] == "?" {
		return nil
	}
	var err error
	c.ret, err = strconv.ParseInt(m[1], 10, 64)
	return err
}

// fd returns the descriptor and the path of an argument, including AT_FDCWD.
func (c traced) fd(arg int) (fd, path string) {
	fd, path, _ = strings.Cut(c.args[arg], "<")
	path, _, _ = strings.Cut(path, ">")
	return fd, unescape(path)
}

// path returns the path of argument name, relative to the folder of argument dir.
func (c traced) path(dir, name int) (string, error) {
	s, err := c.text(name)
	if err != nil || filepath.IsAbs(s) {
		return filepath.Clean(s), err
	}
	_, at := c.fd(dir)
	return filepath.Join(at, s), nil
}

// text returns a string argument.
func (c traced) text(arg int) (string, error) {
	s, ok := strings.CutSuffix(strings.TrimPrefix(c.args[arg], `"`), `"`)
	if !ok {
		return "", fmt.Errorf("%s: argument %d is no whole string: %.80s", c.name, arg, c.args[arg])
	}
	return unescape(s), nil
}

func (c traced) number(arg int) (int64, error) { return strconv.ParseInt(c.args[arg], 0, 64) }

// unescape decodes a sequence of \xHH and ignores everything else.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if i+4 <= len(s) && s[i] == '\\' && s[i+1] == 'x' {
			if n, err := strconv.ParseUint(s[i+2:i+4], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func TestParseStrace(t *testing.T) {
	const log = `7  openat(AT_FDCWD</s>, "\x61", O_RDWR|O_CREAT, 0600) = 3</s/a>
7  write(3</s/a>, "\x28\x2c\x22\x29", 4 <unfinished ...>
8  openat(AT_FDCWD<\x2f\x73>, "\x2f\x73\x2f\x6e\x6f", O_RDONLY) = -1 ENOENT (No such file or directory)
8  --- SIGURG {si_signo=SIGURG, si_code=SI_TKILL, si_pid=7, si_uid=0} ---
7  <... write resumed>)                  = 4
8  unlinkat(5</s/d,(e>, "\x78", AT_REMOVEDIR) = 0
8  fsync(3</s/a> <unfinished ...>
7  +++ exited with 0 +++
8  <... fsync resumed>)                   = 0
8  copy_file_range(3</s/a>, [0], 4</s/b>, NULL, 9, 0) = 9
8  fsync(4</s/b> <unfinished ...>
9  exit_group(0) = ?
`
	calls, err := parseStrace(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range calls {
		got = append(got, fmt.Sprintf("%d-%d %s=%d %s", c.begin, c.end, c.name, c.ret, strings.Join(c.args, "|")))
	}
	want := []string{
		`1-1 openat=3 AT_FDCWD</s>|"\x61"|O_RDWR|O_CREAT|0600`,
		`3-3 openat=-1 AT_FDCWD<\x2f\x73>|"\x2f\x73\x2f\x6e\x6f"|O_RDONLY`,
		`2-5 write=4 3</s/a>|"\x28\x2c\x22\x29"|4`,
		`6-6 unlinkat=0 5</s/d,(e>|"\x78"|AT_REMOVEDIR`,
		`7-9 fsync=0 3</s/a>`,
		`10-10 copy_file_range=9 3</s/a>|[0]|4</s/b>|NULL|9|0`,
		`12-12 exit_group=-1 0`,
	}
	if !slices.Equal(got, want) {
		t.Fatalf("calls\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	text, err := calls[2].text(1)
	fd, path := calls[2].fd(0)
	if err != nil || text != `(,")` || fd != "3" || path != "/s/a" {
		t.Errorf("the write: %q to %s %s, %v", text, fd, path, err)
	}
	for i, want := range map[int]string{0: "/s/a", 1: "/s/no", 3: "/s/d,(e/x"} {
		if got, err := calls[i].path(0, 1); got != want || err != nil {
			t.Errorf("path %d: %s, %v, want %s", i, got, err, want)
		}
	}
	for _, bad := range []string{"7", "7  <... write resumed>) = 1", "7  write(1, 2", "7  write(1)", "7  hello"} {
		if calls, err := parseStrace(strings.NewReader(bad + "\n")); err == nil {
			t.Errorf("%q: %+v", bad, calls)
		}
	}
	cut := traced{name: "write", args: []string{"3", `"\x61"...`}}
	if _, err := cut.text(1); err == nil {
		t.Error(errors.New("a string that strace cut off"))
	}
}
