package engine

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// pythonVersion is any Python that MLX's wheels accept: they contain no Python code. lock/update.py uses the same one.
const pythonVersion = "3.12"

// download lets pip unpack the locked wheels into tmp/out.
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
	args := []string{
		"-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--log", logFile,
		"--target", filepath.Join(tmp, outName), "--no-deps", "--only-binary=:all:", "--require-hashes", "--no-compile",
		"--python-version", pythonVersion,
	}
	for _, tag := range s.platform {
		args = append(args, "--platform", tag)
	}
	args = append(args, "-r", requirements)
	// pip unpacks in its temporary folder and then moves the files, so that folder is on the same disk and is removed with
	// tmp if pip is killed. The PIP_ variables override settings that users may have for their own installations and that
	// would refuse this one, which does not touch any Python environment.
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
			s.Log("no response from the package index, retrying")
		}
	}}
	cmd := s.userCommand(ctx, tmp, environment, py.path, args...)
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
	noFetch   = regexp.MustCompile(`Could not fetch URL [^\n]*?: ` + fetchError + `: ([^\n]*)`)
	broken    = regexp.MustCompile(`connection broken by|` + brokenError)
	httpError = regexp.MustCompile(`\b([45]\d\d) (?:Client|Server) Error: ([^\n]*?) for url`)
	noMatch   = regexp.MustCompile(`No matching distribution found for (\S+)`)
	errorText = regexp.MustCompile(`(?m)^ERROR: (.*)$`)
)

const (
	fetchError  = `(?:connection error|There was a problem confirming the ssl certificate)`
	brokenError = `ConnectionError|ReadTimeoutError|ConnectTimeout|ProxyError|IncompleteRead`
)

const pipRemedy = "check the network and pip's own configuration (index, proxy, certificates), or set " + EnvEngine +
	" to a prepared engine folder"

// pipError summarizes in one line why pip failed, from its output and, if that does not show the cause, from its log.
func (s *setup) pipError(what, out, log string, err error) error {
	if m := gotHash.FindStringSubmatch(out); m != nil {
		file := m[2][strings.LastIndexByte(m[2], '/')+1:]
		file, _, _ = strings.Cut(file, "#")
		return failf(ErrHash, "%s (%s) has sha256 %s, not the expected %s: "+
			"the index that pip uses serves an altered file; nothing was installed", file, m[1], m[4], m[3])
	}
	if strings.Contains(out, "DO NOT MATCH THE HASHES") {
		return failf(ErrHash, "%s does not have the expected hash: "+
			"the index that pip uses serves an altered file; nothing was installed", what)
	}
	if noSpaceLine.MatchString(out) || noSpaceLine.MatchString(log) {
		return failf(ErrNoSpace, "downloading %s: no space left on device: "+
			"free some space, or set %s to a folder on another disk (now %s)", what, EnvCache, s.cacheDir)
	}
	if m := noFetch.FindStringSubmatch(log); m != nil {
		return failf(ErrDownload, "downloading %s: pip could not reach its package index (%s): %s",
			what, innerCause(m[1]), pipRemedy)
	}
	if m := httpError.FindStringSubmatch(log); m != nil {
		return failf(ErrDownload, "downloading %s: pip's package index responded %s %s: %s", what, m[1], m[2], pipRemedy)
	}
	if broken.MatchString(out) {
		return failf(ErrDownload, "downloading %s: the connection to pip's package index broke: run it again, or %s",
			what, pipRemedy)
	}
	if m := noMatch.FindStringSubmatch(out); m != nil {
		return failf(ErrDownload, "the package index that pip uses has no %s for %s: "+
			"configure pip with an index that has it, or set %s to a prepared engine folder",
			m[1], s.host.platform(), EnvEngine)
	}
	reason := err.Error()
	if all := errorText.FindAllStringSubmatch(out, -1); len(all) > 0 {
		reason = all[len(all)-1][1]
	}
	return failf(ErrDownload, "downloading %s: pip failed: %s", what, reason)
}

// innerCause extracts the human-readable text of a nested exception as Python prints it: the last quoted text, without
// the object that it starts with.
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
