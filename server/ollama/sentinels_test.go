package ollama

import (
	"context"
	"os"
	"syscall"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/chat/jinja/value"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/chat/prompt"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/convert/export"
	"github.com/ingotml/ingot/convert/recipe"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/convert/sources"
	"github.com/ingotml/ingot/grammar"
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/launch"
	"github.com/ingotml/ingot/launch/json5"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/engine"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/ingotml/ingot/runtime/runner"
	"github.com/ingotml/ingot/runtime/verify"
	"github.com/ingotml/ingot/safetensors"
	"github.com/ingotml/ingot/server/identity"
	"github.com/ingotml/ingot/server/servertest"
	"github.com/ingotml/ingot/server/wire"
	"github.com/ingotml/ingot/tokenizer"
	"github.com/ingotml/ingot/tokenizer/fault"
	"github.com/ingotml/ingot/vision"
)

var sentinels = []struct {
	name string
	err  error
}{
	{"context.Canceled", context.Canceled},
	{"context.DeadlineExceeded", context.DeadlineExceeded},
	{"os.ErrDeadlineExceeded", os.ErrDeadlineExceeded},
	{"syscall.ENOSPC", syscall.ENOSPC},
	{"arch.ErrConfig", arch.ErrConfig},
	{"arch.ErrDraft", arch.ErrDraft},
	{"arch.ErrTable", arch.ErrTable},
	{"arch.ErrUnknownArchitecture", arch.ErrUnknownArchitecture},
	{"arch.ErrWritten", arch.ErrWritten},
	{"cache.ErrEncoding", cache.ErrEncoding},
	{"cache.ErrUnsupported", cache.ErrUnsupported},
	{"chat.ErrNoTemplate", chat.ErrNoTemplate},
	{"chat.ErrOtherTemplates", chat.ErrOtherTemplates},
	{"chat.ErrTemplate", chat.ErrTemplate},
	{"chat.ErrTools", chat.ErrTools},
	{"chat/jinja.ErrInput", jinja.ErrInput},
	{"chat/jinja.ErrLimit", jinja.ErrLimit},
	{"chat/jinja.ErrRender", jinja.ErrRender},
	{"chat/jinja.ErrSyntax", jinja.ErrSyntax},
	{"chat/jinja/value.ErrInput", value.ErrInput},
	{"chat/jinja/value.ErrLimit", value.ErrLimit},
	{"chat/jinja/value.ErrRender", value.ErrRender},
	{"chat/jinja/value.ErrSyntax", value.ErrSyntax},
	{"chat/parse.ErrCall", parse.ErrCall},
	{"chat/parse.ErrIncomplete", parse.ErrIncomplete},
	{"chat/parse.ErrNoGrammar", parse.ErrNoGrammar},
	{"chat/parse.ErrUnknownParser", parse.ErrUnknownParser},
	{"chat/prompt.ErrLong", prompt.ErrLong},
	{"convert.ErrRefused", convert.ErrRefused},
	{"convert/export.ErrExport", export.ErrExport},
	{"convert/recipe.ErrRecipe", recipe.ErrRecipe},
	{"convert/source.ErrSource", source.ErrSource},
	{"convert/sources.ErrSource", sources.ErrSource},
	{"grammar.ErrBudget", grammar.ErrBudget},
	{"grammar.ErrInvalid", grammar.ErrInvalid},
	{"grammar.ErrLimit", grammar.ErrLimit},
	{"grammar.ErrToken", grammar.ErrToken},
	{"grammar.ErrUnsupported", grammar.ErrUnsupported},
	{"grammar.ErrVocabulary", grammar.ErrVocabulary},
	{"grammar/expr.ErrInvalid", expr.ErrInvalid},
	{"grammar/expr.ErrLimit", expr.ErrLimit},
	{"grammar/expr.ErrUnsupported", expr.ErrUnsupported},
	{"launch.ErrAbsent", launch.ErrAbsent},
	{"launch/json5.ErrShape", json5.ErrShape},
	{"launch/json5.ErrSyntax", json5.ErrSyntax},
	{"manifest.ErrBlobMissing", manifest.ErrBlobMissing},
	{"manifest.ErrBlobsKept", manifest.ErrBlobsKept},
	{"manifest.ErrBusy", manifest.ErrBusy},
	{"manifest.ErrCorrupt", manifest.ErrCorrupt},
	{"manifest.ErrHave", manifest.ErrHave},
	{"manifest.ErrInvalidImage", manifest.ErrInvalidImage},
	{"manifest.ErrInvalidManifest", manifest.ErrInvalidManifest},
	{"manifest.ErrInvalidName", manifest.ErrInvalidName},
	{"manifest.ErrNoSpace", manifest.ErrNoSpace},
	{"manifest.ErrNotFound", manifest.ErrNotFound},
	{"manifest.ErrNotStore", manifest.ErrNotStore},
	{"manifest.ErrTooLarge", manifest.ErrTooLarge},
	{"manifest.ErrUnknownManifest", manifest.ErrUnknownManifest},
	{"mlx.ErrClosed", mlx.ErrClosed},
	{"mlx.ErrNoCgo", mlx.ErrNoCgo},
	{"mlx.ErrOutOfMemory", mlx.ErrOutOfMemory},
	{"mlx.ErrVersion", mlx.ErrVersion},
	{"mlx/engine.ErrCompile", engine.ErrCompile},
	{"mlx/engine.ErrDownload", engine.ErrDownload},
	{"mlx/engine.ErrHash", engine.ErrHash},
	{"mlx/engine.ErrInvalid", engine.ErrInvalid},
	{"mlx/engine.ErrLoad", engine.ErrLoad},
	{"mlx/engine.ErrNoCompiler", engine.ErrNoCompiler},
	{"mlx/engine.ErrNoPython", engine.ErrNoPython},
	{"mlx/engine.ErrNoSpace", engine.ErrNoSpace},
	{"mlx/engine.ErrNotInstalled", engine.ErrNotInstalled},
	{"mlx/engine.ErrUnsupported", engine.ErrUnsupported},
	{"modelfile.ErrModelfile", modelfile.ErrModelfile},
	{"models.ErrUnsupported", models.ErrUnsupported},
	{"models/nn.ErrWeights", nn.ErrWeights},
	{"quantize.ErrDType", quantize.ErrDType},
	{"quantize.ErrLength", quantize.ErrLength},
	{"quantize.ErrNotFinite", quantize.ErrNotFinite},
	{"quantize.ErrOverflow", quantize.ErrOverflow},
	{"quantize.ErrShape", quantize.ErrShape},
	{"quantize.ErrType", quantize.ErrType},
	{"registry.ErrNoReference", registry.ErrNoReference},
	{"registry.ErrNotSigned", registry.ErrNotSigned},
	{"registry.ErrOtherReference", registry.ErrOtherReference},
	{"registry/remote.ErrCertificate", remote.ErrCertificate},
	{"registry/remote.ErrDigest", remote.ErrDigest},
	{"registry/remote.ErrInterrupted", remote.ErrInterrupted},
	{"registry/remote.ErrNoHost", remote.ErrNoHost},
	{"registry/remote.ErrNotFound", remote.ErrNotFound},
	{"registry/remote.ErrPlainHTTP", remote.ErrPlainHTTP},
	{"registry/remote.ErrPrivateAddress", remote.ErrPrivateAddress},
	{"registry/remote.ErrPrivateRegistry", remote.ErrPrivateRegistry},
	{"registry/remote.ErrTLS", remote.ErrTLS},
	{"registry/remote.ErrUnauthorized", remote.ErrUnauthorized},
	{"registry/remote.ErrUnsupported", remote.ErrUnsupported},
	{"registry/sigstore.ErrBundle", sigstore.ErrBundle},
	{"registry/sigstore.ErrKey", sigstore.ErrKey},
	{"registry/sigstore.ErrOtherKey", sigstore.ErrOtherKey},
	{"registry/sigstore.ErrPassword", sigstore.ErrPassword},
	{"registry/sigstore.ErrPurpose", sigstore.ErrPurpose},
	{"registry/sigstore.ErrSubject", sigstore.ErrSubject},
	{"runtime.ErrBusy", runtime.ErrBusy},
	{"runtime.ErrDraft", runtime.ErrDraft},
	{"runtime.ErrEmbedding", runtime.ErrEmbedding},
	{"runtime.ErrFormat", runtime.ErrFormat},
	{"runtime.ErrImage", runtime.ErrImage},
	{"runtime.ErrMemory", runtime.ErrMemory},
	{"runtime.ErrNoTokenizer", runtime.ErrNoTokenizer},
	{"runtime.ErrPictures", runtime.ErrPictures},
	{"runtime.ErrPrompt", runtime.ErrPrompt},
	{"runtime.ErrSampling", runtime.ErrSampling},
	{"runtime/load.ErrClosed", load.ErrClosed},
	{"runtime/pool.ErrClosed", pool.ErrClosed},
	{"runtime/pool.ErrTooLarge", pool.ErrTooLarge},
	{"runtime/quality.ErrReference", quality.ErrReference},
	{"runtime/runner.ErrDied", runner.ErrDied},
	{"runtime/verify.ErrNotComparable", verify.ErrNotComparable},
	{"safetensors.ErrAmbiguous", safetensors.ErrAmbiguous},
	{"safetensors.ErrDType", safetensors.ErrDType},
	{"safetensors.ErrDataSize", safetensors.ErrDataSize},
	{"safetensors.ErrDuplicate", safetensors.ErrDuplicate},
	{"safetensors.ErrHeader", safetensors.ErrHeader},
	{"safetensors.ErrHeaderTooLarge", safetensors.ErrHeaderTooLarge},
	{"safetensors.ErrHole", safetensors.ErrHole},
	{"safetensors.ErrIncomplete", safetensors.ErrIncomplete},
	{"safetensors.ErrIndex", safetensors.ErrIndex},
	{"safetensors.ErrName", safetensors.ErrName},
	{"safetensors.ErrNoWeights", safetensors.ErrNoWeights},
	{"safetensors.ErrOffsets", safetensors.ErrOffsets},
	{"safetensors.ErrOverlap", safetensors.ErrOverlap},
	{"safetensors.ErrShape", safetensors.ErrShape},
	{"safetensors.ErrTrailing", safetensors.ErrTrailing},
	{"safetensors.ErrTruncated", safetensors.ErrTruncated},
	{"server/identity.ErrNonce", identity.ErrNonce},
	{"server/identity.ErrUnproven", identity.ErrUnproven},
	{"server/servertest.ErrBurst", servertest.ErrBurst},
	{"server/wire.ErrStopping", wire.ErrStopping},
	{"tokenizer.ErrInvalid", tokenizer.ErrInvalid},
	{"tokenizer.ErrTimeout", tokenizer.ErrTimeout},
	{"tokenizer.ErrToken", tokenizer.ErrToken},
	{"tokenizer.ErrUnsupported", tokenizer.ErrUnsupported},
	{"tokenizer/fault.ErrInvalid", fault.ErrInvalid},
	{"tokenizer/fault.ErrTimeout", fault.ErrTimeout},
	{"tokenizer/fault.ErrToken", fault.ErrToken},
	{"tokenizer/fault.ErrUnsupported", fault.ErrUnsupported},
	{"vision.ErrConfig", vision.ErrConfig},
	{"vision.ErrPicture", vision.ErrPicture},
}
