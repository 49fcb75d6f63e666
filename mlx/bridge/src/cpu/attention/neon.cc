#define INGOT_ISA neon
#include "cpu/attention/small_batch.h"
#include "cpu/attention/tile.h"

namespace ingot::cpu {

const AttentionKernels attention_neon = {
    .panel = neon::kPanel,
    .chunk = neon::kChunk,
    .tile = neon::tile,
    .small_batch = neon::small_batch,
    .join = neon::join,
    .pack = neon::pack,
};

}  // namespace ingot::cpu
