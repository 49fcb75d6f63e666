package engine

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Any Python that MLX's wheels accept: they hold no Python code. lock/update.py names it too.
const pythonVersion = "3.12"

// download has pip unpack the locked wheels into tmp/out.
func (s *setup) download(ctx context.Context, py python, tmp string) error {
	requirements := filepath.Join(tmp, "requirements.txt")
	if err := os.WriteFile(requirements, []byte(s.lock.requirements()), 0o644); err != nil {
		return err
	}
	scratch := filepath.Join(tmp, "tmp")
	if err := os.Mkdir(scratch, 0o755); err != nil {
		return err
	}
	logFile := filepath.Join(tmp, "pip.log")
	args := []string{"-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--log", logFile,
		"--target", filepath.Join(tmp, outName), "--no-deps", "--only-binary=:all:", "--require-hashes", "--no-compile", "--python-version", pythonVersion}
	for _, tag := range s.platform {
		args = append(args, "--platform", tag)
	}
	args = append(args, "-r", requirements)
	// pip unpacks in its temporary folder and then moves: on the same disk, and gone with tmp if it is killed. What a
	// user may have set for their own installations must not refuse this one, which touches no Python.
	environment := []string{"TMPDIR=" + scratch, "PIP_USER=0", "PIP_REQUIRE_VIRTUALENV=0", "PIP_ROOT_USER_ACTION=ignore"}

	names := make([]string, len(s.lock.packages))
	for i, p := range s.lock.packages {
		names[i] = p.String()
	}
	s.Log("downloading %s", strings.Join(names, ", "))
	out := &lineWriter{line: func(line string) {
		if m := fetching.FindStringSubmatch(line); m != nil {
			s.Log("%s %s", strings.ToLower(m[1]), m[2])
		} else if strings.HasPrefix(line, "WARNING: Retrying") {
			s.Log("no answer from the package index, trying again")
		}
	}}
	cmd := s.command(ctx, tmp, environment, py.path, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		log, _ := os.ReadFile(logFile)
		return s.pipError(names[0], out.all.String(), string(log), err)
	}
	return nil
}

var (
	fetching  = regexp.MustCompile(`^\s*(Downloading|Using cached) (\S+\.whl \([^)]*\))`)
	gotHash   = regexp.MustCompile(`(?s)(\S+==\S+) from (\S+).*?Expected sha256 (\w+).*?Got\s+(\w+)`)
	noFetch   = regexp.MustCompile(`Could not fetch URL [^\n]*?: (?:connection error|There was a problem confirming the ssl certificate): ([^\n]*)`)
	broken    = regexp.MustCompile(`connection broken by|ConnectionError|ReadTimeoutError|ConnectTimeout|ProxyError|IncompleteRead`)
	httpError = regexp.MustCompile(`\b([45]\d\d) (?:Client|Server) Error: ([^\n]*?) for url`)
	noMatch   = regexp.MustCompile(`No matching distribution found for (\S+)`)
	errorText = regexp.MustCompile(`(?m)^ERROR: (.*)$`)
)

const pipRemedy = "check the network and pip's own configuration (index, proxy, certificates), or set " + EnvEngine + " to a prepared engine folder"

// pipError says in one line why pip failed: from what it prints and, where that leaves the cause open, from its log.
func (s *setup) pipError(what, out, log string, err error) error {
	if m := gotHash.FindStringSubmatch(out); m != nil {
		file := m[2][strings.LastIndexByte(m[2], '/')+1:]
		file, _, _ = strings.Cut(file, "#")
		return failf(ErrHash, "%s (%s) has sha256 %s, not the %s that this program was made with: the index that pip uses serves an altered file; nothing was installed", file, m[1], m[4], m[3])
	}
	if strings.Contains(out, "DO NOT MATCH THE HASHES") {
		return failf(ErrHash, "%s does not have the hash that this program was made with: the index that pip uses serves an altered file; nothing was installed", what)
	}
	if noSpaceLine.MatchString(out) || noSpaceLine.MatchString(log) {
		return failf(ErrNoSpace, "downloading %s: no space left on device: free some space, or set %s to a folder on another disk (now %s)", what, EnvCache, s.cacheDir)
	}
	if m := noFetch.FindStringSubmatch(log); m != nil {
		return failf(ErrDownload, "downloading %s: pip could not reach its package index (%s): %s", what, innerCause(m[1]), pipRemedy)
	}
	if m := httpError.FindStringSubmatch(log); m != nil {
		return failf(ErrDownload, "downloading %s: pip's package index answered %s %s: %s", what, m[1], m[2], pipRemedy)
	}
	if broken.MatchString(out) {
		return failf(ErrDownload, "downloading %s: the connection to pip's package index broke: run it again, or %s", what, pipRemedy)
	}
	if m := noMatch.FindStringSubmatch(out); m != nil {
		return failf(ErrDownload, "the package index that pip uses has no %s for %s: point pip's configuration at one that has, or set %s to a prepared engine folder", m[1], s.host.platform(), EnvEngine)
	}
	said := err.Error()
	if all := errorText.FindAllStringSubmatch(out, -1); len(all) > 0 {
		said = all[len(all)-1][1]
	}
	return failf(ErrDownload, "downloading %s: pip failed: %s", what, said)
}

// innerCause finds the words for people in an exception that wraps others, as Python prints it: the last quoted text,
// without the object that it begins with.
func innerCause(exception string) string {
	cause := strings.TrimSuffix(strings.TrimSpace(exception), " - skipping")
	quoted := strings.FieldsFunc(cause, func(r rune) bool { return r == '\'' || r == '"' })
	for _, text := range slices.Backward(quoted) {
		if len(strings.Fields(text)) > 1 {
			cause = text
			break
		}
	}
	for _, before := range []string{"): ", ">: ", "new connection: "} {
		if _, after, ok := strings.Cut(cause, before); ok {
			cause = after
		}
	}
	return cause
}
