#include "actions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

struct plait_member {
    uint32_t handle;
    uint32_t references; /* of entries and of group slots */
    struct plait_action_data data;
};

struct plait_profile_group {
    struct plait_group group; /* first: what entries point at */
    uint32_t references;
    uint32_t n_distinct;
    struct plait_member **distinct; /* each member once, however often its weight repeats it */
};

void plait_actions_init(struct plait_actions *actions, const struct plait_pipeline *pipeline)
{
    *actions = (struct plait_actions){.pipeline = pipeline};
    for (uint32_t i = 0; i < pipeline->n_actions; i++)
        if (pipeline->actions[i].params_bytes > actions->widest)
            actions->widest = pipeline->actions[i].params_bytes;
}

static void group_free(struct plait_profile_group *group)
{
    if (group) {
        free(group->group.members);
        free(group->distinct);
        free(group);
    }
}

void plait_actions_free(struct plait_actions *actions)
{
    for (uint32_t i = 0; i < actions->n_members; i++)
        free(actions->members[i]);
    for (uint32_t i = 0; i < actions->n_groups; i++)
        group_free(actions->groups[i]);
    free(actions->members);
    free(actions->groups);
    memset(actions, 0, sizeof *actions);
}

uint32_t plait_action_wire_bytes(const struct plait_action_desc *action)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < action->n_params; i++)
        bytes += (action->params[i].width + 7) / 8;
    return bytes;
}

static int action_data_fill(const struct plait_actions *actions, uint32_t action, const uint8_t *wire,
                            uint32_t wire_length, struct plait_action_data *data, struct plait_error *error)
{
    if (action >= actions->pipeline->n_actions)
        return plait_fail(error, ENOENT, "action index %u: the program has %u actions", action,
                          actions->pipeline->n_actions);
    const struct plait_action_desc *desc = &actions->pipeline->actions[action];
    uint32_t expected = plait_action_wire_bytes(desc);
    if (wire_length != expected)
        return plait_fail(error, EINVAL, "parameters of action %s: %u bytes given, %u expected", desc->name,
                          wire_length, expected);
    /* All fields are checked before any is stored: a refused modification leaves the member as it was. */
    uint32_t position = 0;
    for (uint32_t i = 0; i < desc->n_params; i++) {
        uint32_t width = desc->params[i].width, bytes = (width + 7) / 8;
        if (width % 8 && wire[position] >> (width % 8))
            return plait_fail(error, EINVAL, "parameter %s of action %s: value exceeds %u bits", desc->params[i].name,
                              desc->name, width);
        position += bytes;
    }
    data->action = action;
    data->reserved = 0;
    memset(data->params, 0, desc->params_bytes);
    position = 0;
    for (uint32_t i = 0; i < desc->n_params; i++) {
        uint32_t bytes = (desc->params[i].width + 7) / 8;
        uint8_t *to = (uint8_t *)data->params + desc->params[i].offset;
        if (desc->params[i].width <= 64) {
            uint64_t value = 0;
            for (uint32_t b = 0; b < bytes; b++)
                value = value << 8 | wire[position + b];
            memcpy(to, &value, sizeof value);
        } else {
            memcpy(to, wire + position, bytes);
        }
        position += bytes;
    }
    return 0;
}

int plait_action_data_create(const struct plait_actions *actions, uint32_t action, const uint8_t *wire,
                             uint32_t wire_length, struct plait_action_data **data, struct plait_error *error)
{
    struct plait_action_data *created = calloc(1, sizeof *created + actions->widest);
    if (!created)
        return plait_fail(error, ENOMEM, "no memory for action data");
    int result = action_data_fill(actions, action, wire, wire_length, created, error);
    if (result) {
        free(created);
        return result;
    }
    *data = created;
    return 0;
}

/* Makes room for one more pointer in a growing array. */
static bool reserve(void **array, uint32_t count, uint32_t *capacity)
{
    if (count < *capacity)
        return true;
    uint32_t wanted = *capacity ? *capacity * 2 : 16;
    void *grown = realloc(*array, wanted * sizeof(void *));
    if (!grown)
        return false;
    *array = grown;
    *capacity = wanted;
    return true;
}

static struct plait_member *member_get(struct plait_actions *actions, uint32_t handle, struct plait_error *error)
{
    if (handle < actions->n_members && actions->members[handle])
        return actions->members[handle];
    plait_fail(error, ENOENT, "member handle %u: no such member", handle);
    return NULL;
}

static struct plait_profile_group *group_get(struct plait_actions *actions, uint32_t handle, struct plait_error *error)
{
    if (handle < actions->n_groups && actions->groups[handle])
        return actions->groups[handle];
    plait_fail(error, ENOENT, "group handle %u: no such group", handle);
    return NULL;
}

int plait_member_create(struct plait_actions *actions, uint32_t action, const uint8_t *wire, uint32_t wire_length,
                        uint32_t *handle, struct plait_error *error)
{
    struct plait_member *member = calloc(1, sizeof *member + actions->widest);
    if (!member || !reserve((void **)&actions->members, actions->n_members, &actions->members_capacity)) {
        free(member);
        return plait_fail(error, ENOMEM, "no memory for a member");
    }
    int result = action_data_fill(actions, action, wire, wire_length, &member->data, error);
    if (result) {
        free(member);
        return result;
    }
    member->handle = actions->n_members;
    actions->members[actions->n_members++] = member;
    *handle = member->handle;
    return 0;
}

int plait_member_modify(struct plait_actions *actions, uint32_t handle, uint32_t action, const uint8_t *wire,
                        uint32_t wire_length, struct plait_error *error)
{
    struct plait_member *member = member_get(actions, handle, error);
    return member ? action_data_fill(actions, action, wire, wire_length, &member->data, error) : -ENOENT;
}

int plait_member_delete(struct plait_actions *actions, uint32_t handle, struct plait_error *error)
{
    struct plait_member *member = member_get(actions, handle, error);
    if (!member)
        return -ENOENT;
    if (member->references)
        return plait_fail(error, EBUSY, "member handle %u: %u entries or groups still use it", handle,
                          member->references);
    free(member);
    actions->members[handle] = NULL;
    return 0;
}

int plait_group_create(struct plait_actions *actions, uint32_t *handle, struct plait_error *error)
{
    struct plait_profile_group *group = calloc(1, sizeof *group);
    if (!group || !reserve((void **)&actions->groups, actions->n_groups, &actions->groups_capacity)) {
        free(group);
        return plait_fail(error, ENOMEM, "no memory for a group");
    }
    *handle = actions->n_groups;
    actions->groups[actions->n_groups++] = group;
    return 0;
}

struct weighted {
    struct plait_member *member;
    uint32_t weight;
};

static int by_handle(const void *a, const void *b)
{
    const struct weighted *left = a, *right = b;
    return (left->member->handle > right->member->handle) - (left->member->handle < right->member->handle);
}

int plait_group_set(struct plait_actions *actions, uint32_t handle, const uint32_t *members, const uint32_t *weights,
                    uint32_t count, struct plait_error *error)
{
    struct plait_profile_group *group = group_get(actions, handle, error);
    if (!group)
        return -ENOENT;
    uint64_t size = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!member_get(actions, members[i], error))
            return -ENOENT;
        if (weights[i] == 0)
            return plait_fail(error, EINVAL, "weight of member %u: must be at least 1", members[i]);
        size += weights[i];
    }
    if (size > PLAIT_GROUP_LIMIT)
        return plait_fail(error, EINVAL, "weights of group %u: sum exceeds %u", handle, PLAIT_GROUP_LIMIT);
    struct weighted *sorted = calloc(count + 1, sizeof *sorted);
    struct plait_member **distinct = calloc(count + 1, sizeof(void *));
    struct plait_action_data **slots = calloc(size + 1, sizeof(void *));
    if (!sorted || !distinct || !slots) {
        free(sorted);
        free(distinct);
        free(slots);
        return plait_fail(error, ENOMEM, "no memory for a group");
    }
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = (struct weighted){actions->members[members[i]], weights[i]};
    qsort(sorted, count, sizeof *sorted, by_handle);
    uint32_t slot = 0;
    for (uint32_t i = 0; i < count; i++) {
        distinct[i] = sorted[i].member;
        distinct[i]->references++;
        for (uint32_t w = 0; w < sorted[i].weight; w++)
            slots[slot++] = &sorted[i].member->data;
    }
    for (uint32_t i = 0; i < group->n_distinct; i++)
        group->distinct[i]->references--;
    free(group->distinct);
    free(group->group.members);
    free(sorted);
    group->distinct = distinct;
    group->n_distinct = count;
    group->group.members = slots;
    group->group.size = slot;
    return 0;
}

int plait_group_delete(struct plait_actions *actions, uint32_t handle, struct plait_error *error)
{
    struct plait_profile_group *group = group_get(actions, handle, error);
    if (!group)
        return -ENOENT;
    if (group->references)
        return plait_fail(error, EBUSY, "group handle %u: %u entries still use it", handle, group->references);
    for (uint32_t i = 0; i < group->n_distinct; i++)
        group->distinct[i]->references--;
    group_free(group);
    actions->groups[handle] = NULL;
    return 0;
}

int plait_bind(struct plait_actions *actions, const struct plait_target *target, enum plait_table_kind kind,
               struct plait_bound *bound, struct plait_error *error)
{
    struct plait_bound made = {0};
    switch (target->kind) {
    case PLAIT_TARGET_ACTION: {
        int result =
            plait_action_data_create(actions, target->index, target->params, target->params_length, &made.own, error);
        if (result)
            return result;
        break;
    }
    case PLAIT_TARGET_MEMBER:
        if (kind == PLAIT_TABLE_SIMPLE)
            return plait_fail(error, EINVAL, "target: the table has no action profile, so no members");
        made.member = member_get(actions, target->index, error);
        if (!made.member)
            return -ENOENT;
        made.member->references++;
        break;
    case PLAIT_TARGET_GROUP:
        if (kind != PLAIT_TABLE_INDIRECT_SELECTOR)
            return plait_fail(error, EINVAL, "target: the table has no action selector, so no groups");
        made.group = group_get(actions, target->index, error);
        if (!made.group)
            return -ENOENT;
        made.group->references++;
        break;
    default:
        return plait_fail(error, EINVAL, "target: unknown kind %u", target->kind);
    }
    *bound = made;
    return 0;
}

void plait_unbind(struct plait_bound *bound)
{
    free(bound->own);
    if (bound->member)
        bound->member->references--;
    if (bound->group)
        bound->group->references--;
    *bound = (struct plait_bound){0};
}

void plait_bound_show(const struct plait_bound *bound, struct plait_entry *entry)
{
    entry->data = bound->own ? bound->own : bound->member ? &bound->member->data : NULL;
    entry->group = bound->group ? &bound->group->group : NULL;
}
