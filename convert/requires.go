package convert

import (
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/modelfile"
)

// checkVersion rejects a Modelfile that requires a later version of the program. A build without a version only warns.
func checkVersion(file *modelfile.File, c modelfile.Command, version string) (warning []string, err error) {
	late, known := settings.Later(c.Value, version)
	switch {
	case !known:
		return []string{file.Errorf(c, "this build of ingot has no version to compare with").Error()}, nil
	case late:
		return nil, file.Errorf(c, "this is ingot %s: update it, or remove the line if another program is meant", version)
	}
	return nil, nil
}
