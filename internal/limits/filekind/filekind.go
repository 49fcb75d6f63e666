package filekind

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Kind is a format of files.
type Kind int

// Kinds of files that are found in the place of a model's.
const (
	Unknown     Kind = iota
	Empty            // no bytes
	Zeros            // space that a download reserved and has not filled
	Pointer          // of Git LFS: a clone without Git LFS has them in the place of large files
	Page             // HTML or XML, which servers send with an error
	Message          // a line of text, which servers send with an error
	GGUF             // of llama.cpp
	GGML             // llama.cpp's formats before GGUF
	Safetensors      //
	Pickle           // of PyTorch, in a zip archive or alone
	Zip              // another zip archive, such as NumPy's
	Archive          // compressed files, or several in one
	HDF5             // Keras and TensorFlow
	NumPy            // one array
	JSON             // an object or a list
	Piece            // a model of SentencePiece
	Ranks            // a vocabulary of tiktoken: lines of a token in base64 and its rank
)

var names = map[Kind]string{
	Unknown: "a file of an unknown format", Empty: "empty", Zeros: "an unfinished download: it begins with zeros",
	Pointer: "a Git LFS pointer", Page: "an HTML page, as servers send with an error",
	Message: "a server's message of an error", GGUF: "a GGUF file", GGML: "a file of llama.cpp from before GGUF",
	Safetensors: "a safetensors file", Pickle: "a PyTorch pickle", Zip: "a zip archive",
	Archive: "a compressed file or an archive", HDF5: "an HDF5 file of Keras or TensorFlow",
	NumPy: "an array of NumPy", JSON: "JSON text", Piece: "a model of SentencePiece", Ranks: "a vocabulary of tiktoken",
}

// String describes the kind: "a GGUF file".
func (k Kind) String() string { return names[k] }

// HeadSize is the number of bytes that a kind is decided by.
const HeadSize = 1024

// Found is what a file's first bytes say of it.
type Found struct {
	Kind Kind
	Size int64 // of the file that a pointer stands for; -1: not known
}

// String describes the file: "a GGUF file".
func (f Found) String() string {
	if f.Kind == Pointer && f.Size >= 0 {
		return fmt.Sprintf("%v to a file of %d bytes", f.Kind, f.Size)
	}
	return f.Kind.String()
}

// Stray reports whether no reader of any format wants the file: it is in the place of another one.
func (f Found) Stray() bool {
	return slices.Contains([]Kind{Empty, Zeros, Pointer, Page, Message}, f.Kind)
}

// Wrong says that the file is not what was wanted, and the remedy: "it is a GGUF file, want JSON". It is "" for a kind
// that is one of the wanted, and for one that is unknown.
func (f Found) Wrong(want ...Kind) string {
	switch {
	case f.Kind == Unknown || slices.Contains(want, f.Kind):
		return ""
	case f.Kind == Pointer:
		return fmt.Sprintf("it is %v, not the file itself: run git lfs pull in its clone, or get it from elsewhere", f)
	case f.Stray():
		return fmt.Sprintf("it is %v; download it again", f)
	}
	var list []string
	for _, k := range want {
		list = append(list, k.String())
	}
	text := fmt.Sprintf("it is %v", f)
	if len(list) > 0 {
		text += ", want " + strings.Join(list, " or ")
	}
	return text
}

// Read returns the kind of a file of the given size.
func Read(r io.ReaderAt, size int64) (Found, error) {
	head := make([]byte, min(max(size, 0), HeadSize))
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return Found{}, err
	}
	return Of(head[:n], size), nil
}

// Of returns the kind of a file of the given size that begins with head, which has at least [HeadSize] bytes unless
// that is the whole file.
func Of(head []byte, size int64) Found {
	head = head[:min(len(head), HeadSize)]
	found := Found{Size: -1}
	text := bytes.ToLower(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n"))
	switch {
	case size == 0 || len(head) == 0:
		found.Kind = Empty
	case isSafetensors(head): // first: its first byte may be any
		found.Kind = Safetensors
	case len(head) >= 16 && len(bytes.Trim(head, "\x00")) == 0:
		found.Kind = Zeros
	case begins(text, pointers...):
		found = Found{Pointer, pointerSize(text)}
	case begins(withoutComments(text), pages...):
		found.Kind = Page
	case size <= maxMessage && begins(text, messages...):
		found.Kind = Message
	case isJSON(text):
		found.Kind = JSON
	case isPiece(head):
		found.Kind = Piece
	case isRanks(head):
		found.Kind = Ranks
	case begins(head, "PK\x03\x04") && isTorch(firstMember(head)):
		found.Kind = Pickle
	default:
		for _, f := range formats {
			if begins(head, f.magic...) {
				found.Kind = f.kind
				return found
			}
		}
		if len(head) > tarAt && begins(head[tarAt:], "ustar") {
			found.Kind = Archive
		}
	}
	return found
}

func begins(head []byte, with ...string) bool {
	return slices.ContainsFunc(with, func(s string) bool { return bytes.HasPrefix(head, []byte(s)) })
}

// pointers begin the pointers of Git LFS, and of what it was called before its first version.
// https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
var pointers = []string{"version https://git-lfs.github.com/", "version https://hawser.github.com/"}

// pages begin pages, in lower case, after comments.
var pages = []string{"<!doctype html", "<html", "<head", "<body", "<title", "<meta", "<?xml"}

// messages begin what hubs send in the place of a file that they do not have, or do not give to everybody.
var messages = []string{
	"entry not found", "repository not found", "revision not found", "404: not found", "not found", "access to model",
	"invalid username or password", "invalid credentials", "unauthorized", "forbidden", "internal server error",
	"accessing this repository requires", "too many requests",
}

// maxMessage bounds a message in bytes: a longer text is a file of its own.
const maxMessage = 400

// withoutComments removes the comments that a text begins with.
func withoutComments(text []byte) []byte {
	for begins(text, "<!--") {
		_, rest, closed := bytes.Cut(text, []byte("-->"))
		if !closed {
			return text
		}
		text = bytes.TrimLeft(rest, " \t\r\n")
	}
	return text
}

// formats are those that a constant begins.
var formats = []struct {
	kind  Kind
	magic []string
}{
	{GGUF, []string{"GGUF"}},
	{GGML, []string{"lmgg", "fmgg", "tjgg", "algg"}}, // 32-bit numbers that read ggml, ggmf, ggjt and ggla
	// Protocols 2 to 5 begin with their number. Those before are text, whose first object is a dict or a class.
	{Pickle, []string{"\x80\x02", "\x80\x03", "\x80\x04", "\x80\x05", "(dp", "}q\x00", "ccollections\nOrderedDict\n"}},
	{Zip, []string{"PK\x03\x04", "PK\x05\x06"}},
	{Archive, []string{"\x1f\x8b", "\x28\xb5\x2f\xfd", "\xfd7zXZ\x00", "BZh", "7z\xbc\xaf\x27\x1c"}},
	{HDF5, []string{"\x89HDF\r\n\x1a\n"}},
	{NumPy, []string{"\x93NUMPY"}},
}

// tarAt is where a tar archive says what it is.
const tarAt = 257

// isSafetensors recognizes the length of a header, which is less than 4 GiB, and the brace that it begins with.
func isSafetensors(head []byte) bool {
	return len(head) > 8 && head[8] == '{' && binary.LittleEndian.Uint32(head[4:]) == 0
}

// pointerSize returns the size in a pointer: lines of a key and a value, in the order of the keys.
func pointerSize(head []byte) int64 {
	for line := range strings.Lines(string(head)) {
		var n int64
		if _, err := fmt.Sscanf(line, "size %d", &n); err == nil && n >= 0 {
			return n
		}
	}
	return -1
}

// isPiece recognizes the first field of a SentencePiece model in protocol buffers: a piece, which is its text and its
// score.
func isPiece(head []byte) bool {
	if len(head) < 4 || head[0] != 0x0a {
		return false
	}
	_, n := binary.Uvarint(head[1:])
	if n <= 0 || len(head) < n+3 || head[1+n] != 0x0a {
		return false
	}
	score := n + 3 + int(head[n+2])
	return score >= len(head) || head[score] == 0x15
}

// isJSON recognizes an object or a list. A template may begin with the same brackets, but not with what follows.
func isJSON(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	rest := bytes.TrimLeft(text[1:], " \t\r\n")
	switch text[0] {
	case '{':
		return len(rest) == 0 || strings.IndexByte(`"}`, rest[0]) >= 0
	case '[':
		return len(rest) == 0 || strings.IndexByte(`"[]-0123456789`, rest[0]) >= 0 || begins(rest, "{\"", "{}", "{ ", "{\n")
	}
	return false
}

// isRanks recognizes a line of a token in base64 and its rank.
func isRanks(head []byte) bool {
	line, _, ok := bytes.Cut(head, []byte("\n"))
	token, rank, both := bytes.Cut(bytes.TrimRight(line, "\r"), []byte(" "))
	const base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
	return ok && both && len(token) > 0 && len(token)%4 == 0 && len(rank) > 0 &&
		strings.Trim(string(token), base64) == "" && strings.Trim(string(rank), "0123456789") == ""
}

// isTorch reports whether an archive of PyTorch has a file of this name: NAME/data.pkl, or NAME/data/0.
func isTorch(member string) bool {
	return strings.HasSuffix(member, ".pkl") || strings.Contains(member, "/data/")
}

// firstMember returns the name of a zip archive's first file.
func firstMember(head []byte) string {
	const fixed = 30 // bytes before the name
	if len(head) < fixed {
		return ""
	}
	n := int(binary.LittleEndian.Uint16(head[26:]))
	return string(head[fixed:min(fixed+n, len(head))])
}
