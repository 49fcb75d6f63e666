// Package usercache names the folders of what ingot can make again: compiled tokenizers, states of prompts.
//
// Package mlx/engine finds its own folder in the environment that its child processes get, by the same rule.
package usercache

import (
	"os"
	"path/filepath"
)

// Dir returns a folder in INGOT_CACHE, or in ingot/ in the user's cache folder; "" if there is none. It does not create
// the folder.
func Dir(name string) string {
	if dir := os.Getenv("INGOT_CACHE"); dir != "" {
		return filepath.Join(dir, name)
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(user, "ingot", name)
}
