#define INGOT_ISA neon
#include "cpu/attention/small_batch.h"
#include "cpu/attention/tile.h"

namespace ingot::cpu {

const AttentionKernels attention_neon = {neon::kPanel, neon::kChunk, neon::tile, neon::small_batch, neon::join,
                                         neon::pack};

}  // namespace ingot::cpu
