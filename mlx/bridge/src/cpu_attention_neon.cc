#define INGOT_ISA neon
#include "cpu_attention_few.h"
#include "cpu_attention_tile.h"

namespace ingot::cpu {

const AttentionKernels attention_neon = {neon::kPanel, neon::kChunk, neon::tile, neon::few, neon::join,
                                         neon::pack};

}  // namespace ingot::cpu
