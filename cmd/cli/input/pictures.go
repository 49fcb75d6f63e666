package input

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

// maxPictureFile is the maximum size of a picture file in bytes.
const maxPictureFile = 64 << 20

// pictureExtensions are the extensions of files that a prompt may show to a model.
var pictureExtensions = []string{".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"}

// picture reads a regular file.
func picture(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("picture: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("picture %s is not a regular file", path)
	}
	if info.Size() > maxPictureFile {
		return nil, fmt.Errorf("picture %s is larger than %d MiB", path, maxPictureFile>>20)
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

// Pictures reads the picture files that flags name.
func Pictures(paths []string) (pictures []runtime.Picture, err error) {
	for i, path := range paths {
		data, err := picture(path)
		if err != nil {
			return nil, err
		}
		pictures = append(pictures, runtime.Picture{ID: i, Name: path, Data: data})
	}
	return pictures, nil
}

// TakePictures removes the paths of existing picture files from a prompt. A path is a word with a slash and a picture
// extension; it may be quoted or contain escaped spaces. Paths of files that do not exist stay in the text and are
// returned in missing.
func TakePictures(prompt string) (text string, paths, missing []string) {
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

// word is a word of a prompt.
type word struct {
	start, length int // includes quotes
	text          string
}

// nextWord returns the first word of a text: a quoted path, or the text up to unescaped white space. Trailing
// punctuation is not part of a path.
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
	bare := strings.TrimRight(w.text, ".,;:!?)\"'`")
	if !w.isPicture() && strings.HasSuffix(s[:i], w.text[len(bare):]) {
		w.length -= len(w.text) - len(bare)
		w.text = bare
	}
	w.length = max(w.length, min(i, 1)) // a word of punctuation only
	return w
}

// isPicture reports whether the word looks like a path of a picture.
func (w word) isPicture() bool {
	slash := strings.Contains(w.text, "/") || goruntime.GOOS == "windows" && strings.Contains(w.text, `\`)
	return slash && slices.Contains(pictureExtensions, strings.ToLower(filepath.Ext(w.text)))
}

// isWhole reports whether a quoted text is a path, and not a sentence that ends with one.
func (w word) isWhole() bool {
	_, err := os.Stat(w.path())
	return err == nil || strings.IndexAny(w.text, "./~\\") == 0
}

// path returns the path with ~ expanded to the user's home.
func (w word) path() string {
	if rest, ok := strings.CutPrefix(w.text, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return w.text
}
