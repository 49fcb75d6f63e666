// Command tokenizer runs ingot's tokenizer for bench/tokenizer.py. For each line "TOKENIZER TEXT" on standard input
// (two paths) it encodes the text once and prints the seconds, the number of ids and their hash.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ingotml/ingot/tokenizer"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() error {
	loaded := map[string]*tokenizer.Tokenizer{}
	texts := map[string]string{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		path, textPath, _ := strings.Cut(lines.Text(), " ")
		if loaded[path] == nil {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if loaded[path], err = tokenizer.Load(data, nil); err != nil {
				return err
			}
		}
		if texts[textPath] == "" {
			data, err := os.ReadFile(textPath)
			if err != nil {
				return err
			}
			texts[textPath] = string(data)
		}
		began := time.Now()
		ids, err := loaded[path].Encode(context.Background(), texts[textPath], false)
		if err != nil {
			return err
		}
		seconds := time.Since(began).Seconds()
		h := sha256.New()
		if err := binary.Write(h, binary.LittleEndian, ids); err != nil {
			return err
		}
		fmt.Printf("%.6f %d %x\n", seconds, len(ids), h.Sum(nil))
	}
	return lines.Err()
}
