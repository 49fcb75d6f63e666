//go:build unix

package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const stranger = 65534

// thing makes a folder or a file with a mode and an owner.
func thing(t *testing.T, dir bool, mode fs.FileMode, uid, gid int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x")
	var err error
	if dir {
		err = os.Mkdir(path, 0o700)
	} else {
		err = os.WriteFile(path, nil, 0o600)
	}
	if err == nil && (uid != os.Geteuid() || gid != os.Getegid()) {
		err = os.Chown(path, uid, gid)
	}
	if err == nil {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTrusted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	for _, test := range []struct {
		name     string
		mode     fs.FileMode
		uid, gid int
		trusted  bool
		guarded  bool // of root, whoever owns it
	}{
		{"own", 0o755, 0, 0, true, true},
		{"readable", 0o744, 0, 0, true, true},
		{"of root's group, as in OpenShift", 0o775, 0, 0, true, true},
		{"of a stranger", 0o700, stranger, stranger, false, true},
		{"of a stranger, for all", 0o777, stranger, stranger, false, false},
		{"for all", 0o777, 0, 0, false, false},
		{"for all, sticky: others may still add files", 0o777 | fs.ModeSticky, 0, 0, false, false},
		{"for others only", 0o702, 0, 0, false, false},
		{"of a group of others", 0o775, 0, stranger, false, false},
		{"readable by a group of others", 0o755, 0, stranger, true, true},
	} {
		for _, dir := range []bool{true, false} {
			path := thing(t, dir, test.mode, test.uid, test.gid)
			if got := refused(t, Trusted(path), path); got == test.trusted {
				t.Errorf("%s, folder %v: refused %v", test.name, dir, got)
			}
			if got := refused(t, Guarded(path), path); got == test.guarded {
				t.Errorf("%s, folder %v, any owner: refused %v", test.name, dir, got)
			}
		}
	}
}

// refused reports whether a place was refused with an error that names it.
func refused(t *testing.T, err error, path string) bool {
	t.Helper()
	if err != nil && (!errors.Is(err, ErrUntrusted) || !strings.HasPrefix(err.Error(), path) ||
		!strings.Contains(err.Error(), EnvTrust) || strings.Contains(err.Error(), "\n")) {
		t.Errorf("%s: %v", path, err)
	}
	return err != nil
}

// TestTrustedOtherwise covers what is trusted in spite of its owner and mode, and links.
func TestTrustedOtherwise(t *testing.T) {
	open := thing(t, true, 0o777, os.Geteuid(), os.Getegid())
	inside := filepath.Join(open, "in")
	link := filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Mkdir(inside, 0o777), os.Chmod(inside, 0o777), os.Symlink(open, link)); err != nil {
		t.Fatal(err)
	}
	if !refused(t, Trusted(link), link) {
		t.Error("a link to a folder for all is trusted")
	}
	for list, want := range map[string]bool{
		"": false, open: true, filepath.Dir(open): true, inside: false, "/nowhere:" + open: true, open + "x": false,
		".": false,
	} {
		t.Setenv(EnvTrust, list)
		if got := Trusted(open) == nil; got != want {
			t.Errorf("INGOT_TRUST=%s: trusted %v", list, got)
		}
	}
	t.Setenv(EnvTrust, "")
	if err := Trusted(open + "y"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
}

func TestSudo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	path := thing(t, true, 0o755, 1234, 1234)
	for uid, want := range map[string]bool{"1234": true, "1235": false, "": false} {
		t.Setenv("SUDO_UID", uid)
		if got := Trusted(path) == nil; got != want {
			t.Errorf("SUDO_UID=%s: trusted %v", uid, got)
		}
	}
}

func TestTrustedTree(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	for name, change := range map[string]func(top string) error{
		"": func(string) error { return nil },
		"a file of a stranger": func(top string) error {
			return os.Chown(filepath.Join(top, "a", "b", "file"), stranger, stranger)
		},
		"a file for all":   func(top string) error { return os.Chmod(filepath.Join(top, "a", "b", "file"), 0o666) },
		"a folder for all": func(top string) error { return os.Chmod(filepath.Join(top, "a", "b"), 0o777) },
		"a stranger above": func(top string) error { return os.Chown(top, stranger, 0) },
		"anybody above":    func(top string) error { return os.Chmod(top, 0o777) },
		"a link out to an open file": func(top string) error {
			open := filepath.Join(top, "open")
			return errors.Join(os.WriteFile(open, nil, 0o600), os.Chmod(open, 0o666),
				os.Symlink(open, filepath.Join(top, "a", "link")))
		},
	} {
		top := filepath.Join(t.TempDir(), "top")
		dir := filepath.Join(top, "a")
		err := errors.Join(os.MkdirAll(filepath.Join(dir, "b"), 0o755),
			os.WriteFile(filepath.Join(dir, "b", "file"), nil, 0o644), change(top))
		if err != nil {
			t.Fatal(err)
		}
		if err := TrustedTree(dir); (err == nil) != (name == "") {
			t.Errorf("%s: %v", name, err)
		}
		t.Setenv(EnvTrust, dir)
		if err := TrustedTree(dir); err != nil {
			t.Errorf("%s: in spite of INGOT_TRUST: %v", name, err)
		}
		t.Setenv(EnvTrust, "")
	}
}

// TestAlone covers groups of one user, as Debian, Fedora and `docker run -u` have them.
func TestAlone(t *testing.T) {
	const (
		groups = "root:x:0:\nme:x:1000:\nteam:x:2000:me,you\nshared:x:1001:you\nstaff:x:20:\n"
		users  = "root:x:0:0::/:\nme:x:1000:1000::/home/me:\nyou:x:1002:20::/home/you:\nshared:x:1001:1001::/:\n"
	)
	for _, test := range []struct {
		who      account
		uid, gid string
		want     bool
	}{
		{account{"me", "me"}, "1000", "1000", true},
		{account{"me", "team"}, "1000", "2000", false},
		{account{"me", "staff"}, "1000", "20", false},
		{account{"shared", "shared"}, "1001", "1001", false}, // you are in it
		{account{}, "5000", "5000", true},
		{account{}, "5000", "5001", false},
		{account{}, "20", "20", false}, // the first group of you
		{account{user: "me"}, "1000", "7777", false},
		{account{"ldap", "ldap"}, "8000", "8001", true},
	} {
		if got := test.who.alone(test.uid, test.gid, groups, users); got != test.want {
			t.Errorf("%v, user %s, group %s: %v", test.who, test.uid, test.gid, got)
		}
	}
}

// TestOpenRegular opens no pipe, device, socket or folder, and waits for none.
func TestOpenRegular(t *testing.T) {
	dir := t.TempDir()
	pipe, link, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "file")
	err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink(pipe, link), os.WriteFile(file, []byte("text"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, link, dir, "/dev/zero"} {
		if err := ended(t, path); !errors.Is(err, ErrNotRegular) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if b, err := ReadFile(file, 4); err != nil || string(b) != "text" {
		t.Errorf("a file: %q, %v", b, err)
	}
	if _, err := ReadFile(file, 3); err == nil {
		t.Error("a file beyond the limit is read")
	}
	if _, err := Open(file + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// ended opens a file that must not be opened.
func ended(t *testing.T, path string) error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		f, err := Open(path)
		if err == nil {
			f.Close()
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		t.Fatalf("%s: opening it waits", path)
		return nil
	}
}
