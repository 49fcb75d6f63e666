package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/ingotml/ingot/runtime"
)

// maxPictureFile bounds a picture file.
const maxPictureFile = 64 << 20

// pictureExtensions are those of files that a prompt shows.
var pictureExtensions = []string{".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"}

// readPicture reads a regular file.
func readPicture(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("picture: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("picture %s is not a regular file", path)
	}
	if info.Size() > maxPictureFile {
		return nil, fmt.Errorf("picture %s has more than %d MiB", path, maxPictureFile>>20)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("picture: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPictureFile))
	if err != nil {
		return nil, fmt.Errorf("picture %s: %w", path, err)
	}
	return data, nil
}

func readPictures(paths []string) (pictures []runtime.Picture, err error) {
	for i, path := range paths {
		data, err := readPicture(path)
		if err != nil {
			return nil, err
		}
		pictures = append(pictures, runtime.Picture{ID: i, Name: path, Data: data})
	}
	return pictures, nil
}

// takePictures takes paths of pictures out of a prompt: words that have a slash, or begin with ~/, and end like a picture
// file, quoted or with escaped spaces where they have some. Paths of files that do not exist stay, and are missing.
func takePictures(prompt string) (text string, paths, missing []string) {
	var out strings.Builder
	for rest := prompt; rest != ""; {
		w := nextWord(rest)
		if w.isPicture() {
			switch info, err := os.Stat(w.path()); {
			case err == nil && info.Mode().IsRegular():
				paths = append(paths, w.path())
				out.WriteString(strings.TrimRight(rest[:w.start], " "))
				rest = rest[w.start+w.length:]
				continue
			case errors.Is(err, os.ErrNotExist) && !strings.Contains(w.text, "://"):
				missing = append(missing, w.text)
			}
		}
		out.WriteString(rest[:w.start+w.length])
		rest = rest[w.start+w.length:]
	}
	if len(paths) == 0 {
		return prompt, nil, missing
	}
	return strings.TrimSpace(out.String()), paths, missing
}

// word is a piece of a prompt.
type word struct {
	start, length int // with its quotes
	text          string
}

// nextWord is the first word of a text: what stands in quotes, or goes up to white space that no backslash precedes. Marks
// of punctuation at its end are not a part of a path.
func nextWord(s string) word {
	start := len(s) - len(strings.TrimLeft(s, " \t\r\n("))
	s = s[start:]
	for _, quote := range []string{`"`, `'`, "`"} {
		if !strings.HasPrefix(s, quote) {
			continue
		}
		if end := strings.Index(s[1:], quote); end >= 0 {
			if w := (word{start, end + 2, s[1 : 1+end]}); w.isPicture() && w.isWhole() {
				return w
			}
		}
	}
	var text strings.Builder
	i := 0
	for i < len(s) && !strings.ContainsRune(" \t\r\n", rune(s[i])) {
		if s[i] == '\\' && goruntime.GOOS != "windows" && i+1 < len(s) {
			i++
		}
		text.WriteByte(s[i])
		i++
	}
	w := word{start, i, text.String()}
	if bare := strings.TrimRight(w.text, ".,;:!?)\"'`"); !w.isPicture() && strings.HasSuffix(s[:i], w.text[len(bare):]) {
		w.length -= len(w.text) - len(bare)
		w.text = bare
	}
	w.length = max(w.length, min(i, 1)) // a word of punctuation alone
	return w
}

// isPicture tells whether the word reads like the path of a picture.
func (w word) isPicture() bool {
	slash := strings.Contains(w.text, "/") || goruntime.GOOS == "windows" && strings.Contains(w.text, `\`)
	return slash && slices.Contains(pictureExtensions, strings.ToLower(filepath.Ext(w.text)))
}

// isWhole tells a path in quotes from a sentence in quotes that ends in one.
func (w word) isWhole() bool {
	_, err := os.Stat(w.path())
	return err == nil || strings.IndexAny(w.text, "./~\\") == 0
}

// path is the word with ~ as the user's folder.
func (w word) path() string {
	if rest, ok := strings.CutPrefix(w.text, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return w.text
}
