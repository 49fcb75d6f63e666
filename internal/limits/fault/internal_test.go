package fault_test

// internal are the exported errors that nothing outside the program tells apart: a command ends with exit code 1, a
// request with status 500, and the message says everything.
var internal = []struct{ reason, names string }{
	{"a caller in the program handles it", `
		cache.ErrEncoding
		cmd/certify.ErrUnfit cmd/cli.ErrFailed cmd/cli/servers.ErrNoServer cmd/cli/signing.ErrNoReference
		cmd/terminal.ErrInterrupted
		convert.ErrRefused
		grammar/automaton.ErrBudget
		internal/launch.ErrAbsent internal/limits/work.ErrLimit
		manifest.ErrBlobsKept manifest.ErrHave
		mlx/engine.ErrNotInstalled
		chat/parse/calls.ErrNoGrammar
		registry/attest.ErrNotSigned registry/signed.ErrOtherReference registry/signed.ErrNoReference
		registry/remote.ErrPrivateRegistry
		registry/sigstore.ErrPurpose
		server/pdf.ErrNoPDF server/pdf.ErrPassword server/pdf.ErrNoText server/pdf.ErrUnmapped server/batches.ErrOther
		safetensors.ErrNoWeights
		server/identity.ErrNonce server/openai/stored.ErrUnknown
		tokenizer/encode.ErrCompiled`},
	{"it is about another machine, and its message says which and what happened", `
		runtime.ErrSilent worker/tunnel.ErrPeer worker/tunnel.ErrRefused`},
	{"tests raise it", `server/servertest.ErrBurst`},
	{"a grammar is part of a request's format: runtime.ErrFormat wraps it", `
		grammar/automaton.ErrToken grammar/vocabulary.ErrVocabulary
		grammar/expr.ErrInvalid grammar/expr.ErrEmpty grammar/expr.ErrUnsupported grammar/expr.ErrLimit`},
	{"a picture is part of a request: runtime.ErrPictures stands for it", `vision.ErrPicture`},
	{"a model's output is not at fault: a malformed call stays text", `chat/parse.ErrCall chat/parse.ErrIncomplete`},
	{"it is about a model's files, which a command names in its message", `
		arch.ErrUnknownArchitecture arch.ErrDraft arch/config.ErrBad arch/gguf.ErrMetadata
		arch/table.ErrMismatch arch/table.ErrWritten
		chat.ErrTemplate chat.ErrOtherTemplates chat/jinja/value.ErrSyntax chat/parse.ErrUnknownParser
		convert/export.ErrExport convert/gguf.ErrFormat convert/gguf/vocab.ErrVocabulary convert/tokens.ErrUnknown
		manifest.ErrInvalidImage
		modelfile.ErrModelfile
		models.ErrUnsupported models/nn.ErrWeights models/shard.ErrRanks
		runtime/speed.ErrType
		quantize.ErrType quantize.ErrDType quantize.ErrShape quantize.ErrLength quantize.ErrNotFinite quantize.ErrOverflow
		quantize/ggml.ErrType quantize/ggml.ErrLength quantize/ggml.ErrRange
		safetensors.ErrHeader safetensors.ErrHeaderTooLarge safetensors.ErrTruncated safetensors.ErrTrailing
		safetensors.ErrName safetensors.ErrDuplicate safetensors.ErrDType safetensors.ErrShape safetensors.ErrOffsets
		safetensors.ErrOverlap safetensors.ErrHole safetensors.ErrDataSize safetensors.ErrIndex safetensors.ErrIncomplete
		safetensors.ErrAmbiguous safetensors.ErrOutside safetensors.ErrTooLong
		tokenizer/fault.ErrInvalid tokenizer/fault.ErrUnsupported tokenizer/fault.ErrTimeout tokenizer/fault.ErrToken
		vision.ErrConfig`},
	{"it is about the engine's installation, and its message has the remedy", `
		mlx.ErrNoCgo mlx.ErrVersion
		mlx/engine.ErrInvalid mlx/engine.ErrUnsupported mlx/engine.ErrNoPython mlx/engine.ErrDownload mlx/engine.ErrHash
		mlx/engine.ErrNoCompiler mlx/engine.ErrCompile mlx/engine.ErrNoSpace mlx/engine.ErrLoad`},
	{"it is a mistake in the program, or the end of a model in use", `
		cache.ErrUnsupported mlx.ErrClosed runtime/load.ErrClosed`},
	{"one command returns it, with the details in its message", `
		internal/launch/json5.ErrSyntax internal/launch/json5.ErrShape
		registry/hub.ErrName registry/hub.ErrNotFound registry/hub.ErrForbidden registry/hub.ErrLimited
		registry/hub.ErrOffline registry/hub.ErrChanged
		registry/hub.ErrChecksum registry/hub.ErrNoRanges convert/gguf/checkpoint.ErrNoFile convert/image.ErrLayer
		manifest/unpack.ErrExists manifest/unpack.ErrNoMatch registry.ErrWhole
		registry/remote.ErrNoHost registry/layout.ErrRef registry/layout.ErrLayout registry/layout.ErrNoImage
		internal/limits/place.ErrUntrusted internal/limits/place.ErrNotRegular internal/limits/place.ErrTooLarge
		registry/sigstore.ErrKey registry/sigstore.ErrPassword registry/sigstore.ErrBundle registry/sigstore.ErrOtherKey
		registry/sigstore.ErrSubject
		manifest/statistics.ErrStatistics quantize/weighted.ErrStatistics runtime/calibrate.ErrText
		runtime/certificate.ErrCertificate runtime/certificate.ErrOverlap runtime/certificate.ErrNone
		runtime/quality.ErrReference runtime/verify.ErrNotComparable`},
	{"the server's model does not fit: an error of this machine, not of the request", `runtime/pool.ErrTooLarge`},
}
