package cmd

import (
	"github.com/ingotml/ingot/convert/settings"
	"github.com/ingotml/ingot/manifest"
)

// checkRequires fails if the model requires a later version of this program.
func checkRequires(store *manifest.Store, entry *manifest.Entry) error {
	texts, err := settings.Read(store, entry)
	if err != nil {
		return err
	}
	return texts.CheckRequires(entry.Name.String(), Version)
}
