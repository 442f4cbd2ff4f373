/* Mutates frames and runs each through a generated pipeline: fast, with bounds checked after every step.
 *
 * Built with the tests' harness, whose frame buffers are exactly as large as the ABI promises.
 */
#include "../fastswitch/tests/codegen_harness.c"
#include "../engine/src/random.h"

struct frames {
    const uint8_t *bytes;
    const uint32_t *offsets; /* count + 1 of them */
    uint32_t count;
};

/* What the packet before a crash was: shared memory, which outlives the process. */
struct record {
    uint32_t length;
    uint8_t frame[PLAIT_MAX_FRAME];
};

static uint64_t pick(struct plait_random *random, uint64_t below)
{
    return plait_random_between(random, 0, below - 1);
}

static uint32_t mutated(struct plait_random *random, const struct frames *frames, uint8_t *to)
{
    static const uint8_t interesting[] = {0, 1, 0x7f, 0x80, 0xff, 0x45, 0x4f, 0x08, 0x11};
    uint64_t chosen = pick(random, frames->count);
    uint32_t length = frames->offsets[chosen + 1] - frames->offsets[chosen];
    memcpy(to, frames->bytes + frames->offsets[chosen], length);
    for (uint64_t changes = pick(random, 6); changes && length; changes--) {
        uint32_t place = (uint32_t)pick(random, pick(random, 4) && length > 64 ? 64 : length);
        switch (pick(random, 7)) {
        case 0:
            to[place] ^= (uint8_t)(1u << pick(random, 8));
            break;
        case 1:
            to[place] = interesting[pick(random, sizeof interesting)];
            break;
        case 2:
            to[place] = (uint8_t)pick(random, 256);
            break;
        case 3:
            length = place;
            break;
        case 4: { /* longer */
            uint32_t more = (uint32_t)pick(random, pick(random, 8) ? 40 : PLAIT_MAX_FRAME);
            more = more < PLAIT_MAX_FRAME - length ? more : PLAIT_MAX_FRAME - length;
            for (uint32_t i = 0; i < more; i++)
                to[length++] = (uint8_t)plait_random_next(random);
            break;
        }
        case 5: /* the rest of another */
            chosen = pick(random, frames->count);
            uint32_t start = frames->offsets[chosen], other = frames->offsets[chosen + 1] - start;
            if (other > place) {
                memcpy(to + place, frames->bytes + start + place, other - place);
                length = other;
            }
            break;
        default:
            memmove(to + place, to + place / 2, length - place);
        }
    }
    return length;
}

static const char *check(struct harness *h, uint32_t room)
{
    const struct plait_packet *packet = &h->packet;
    if (packet->data < h->buffer || packet->data > h->buffer + room)
        return "the frame starts outside its buffer";
    if (packet->length > (size_t)(h->buffer + room - packet->data))
        return "the frame ends outside its buffer";
    if (packet->payload_offset > packet->length)
        return "the payload begins after the end of the frame";
    return NULL;
}

/* Runs `count` frames; NULL, or what is wrong with the last one, which `record` holds. */
const char *fuzz_packets(struct harness *h, uint64_t seed, const uint8_t *bytes, const uint32_t *offsets,
                         uint32_t n_frames, uint64_t count, uint32_t n_field_lists, struct record *record)
{
    struct plait_random random;
    struct frames frames = {bytes, offsets, n_frames};
    plait_random_seed(&random, seed);
    while (count--) {
        record->length = mutated(&random, &frames, record->frame);
        uint32_t room = PLAIT_HEADROOM + record->length;
        harness_start(h, record->frame, record->length);
        h->packet.std.ingress_port = (uint32_t)pick(&random, 512);
        h->packet.std.enq_qdepth = (uint32_t)pick(&random, 1 << 19);
        h->instance.now_us += pick(&random, 1000);
        harness_run(h, 'p');
        const char *wrong = check(h, room);
        for (const char *step = "ied"; !wrong && *step; step++) {
            if (!pick(&random, 16))
                harness_reset_metadata(h);
            if (!pick(&random, 16))
                harness_copy_field_list(h, (uint32_t)pick(&random, n_field_lists + 2));
            harness_run(h, *step);
            /* Deparsing puts headers before the payload, whose offset means nothing from then on. */
            if (*step == 'd')
                h->packet.payload_offset = 0;
            wrong = check(h, room);
        }
        if (wrong)
            return wrong;
        static uint8_t copy[PLAIT_MAX_FRAME + PLAIT_HEADROOM];
        harness_frame(h, copy, sizeof copy); /* every byte that would leave is the buffer's */
    }
    return NULL;
}
