#!lua
-- The lease ledger inside Redis: libs/leasehold/lease/ledger/ledger.py, check by check, in the same order.
-- KEYS[1] is the prefix of a database's keys (its hash tag keeps them together); ARGV[1] names
-- the command, the rest are its arguments. Replies are nested arrays of strings.
--
--   <p>:meta                 hash    epoch, seeded, ready, part, fences, vouches, calls, vouched
--   <p>:tables               hash    table -> "current min_version intent"
--   <p>:sessions             hash    session -> "counter expiring agent"
--   <p>:held:<session>       set     "table version" of each lease
--   <p>:on:<table>:<version> zset    sessions holding it (score: the session)
--   <p>:versions:<table>     zset    versions that somebody holds (score: the version)
--   <p>:leased               set     tables that somebody holds
--   <p>:locks                hash    advisory lock -> "holder=modes … | waiter=mode …"; run
--   <p>:waits                hash    waiter -> the advisory lock in whose queue it is
--
-- Work per call is bounded: by the leases of one session, the tables of one call, HOLDERS_MAX
-- names, SESSIONS_MAX sessions, LOCKS_MAX locks; after a loss of state, by the leased tables.

local p = KEYS[1]
local HOLDERS_MAX, SESSIONS_MAX, LEASES_PER_SESSION_MAX = 64, 10000, 10000

-- D6: in the same call as the checks it guards, never before it.
-- ⚠ D11: A server that was demoted, took another's state, and was made master again has lost what
-- it had, under the run id that it had. Each time it is made master it names its state anew
-- (master_replid, the one before is then the second), so both together are its run id.
local info = redis.call('INFO', 'server', 'replication')
local function told(name) -- plain: a pattern takes three times as long
  local _, before = string.find(info, name, 1, true)
  return string.match(info, '^%x+', before + 1)
end
local run = told('run_id:')
if string.find(told('master_replid2:'), '[^0]') then
  run = string.sub(run, 1, 20) .. string.sub(told('master_replid:'), 1, 20)
end

local function text(number) return string.format('%.0f', number) end

local function meta(field) return redis.call('HGET', p .. ':meta', field) or '' end

local function epoch() return tonumber(redis.call('HGET', p .. ':meta', 'epoch') or '0') end

local function refuse(reason, f)
  f = f or {}
  return {'refused', run, reason, text(f.table or 0), text(f.current or 0), text(f.min or 0),
    text(f.epoch or 0), text(f.counter or 0), text(f.total or 0), f.holders or {}}
end

local function table_row(id)
  local row = redis.call('HGET', p .. ':tables', text(id))
  if not row then return nil end
  local current, min, intent = string.match(row, '^(%d+) (%d+) (%d+)$')
  return {table = id, current = tonumber(current), min = tonumber(min), intent = tonumber(intent)}
end

local function put_table(id, current, min, intent)
  local row = text(current) .. ' ' .. text(min) .. ' ' .. text(intent)
  redis.call('HSET', p .. ':tables', text(id), row)
end

local function parse_session(row)
  local counter, expiring, agent = string.match(row, '^(%d+) (%d) (.*)$')
  return {counter = tonumber(counter), expiring = expiring == '1', agent = agent}
end

local function session_row(session)
  local row = redis.call('HGET', p .. ':sessions', session)
  return row and parse_session(row) or nil
end

local function put_session(session, agent, counter, expiring)
  local row = text(counter) .. ' ' .. (expiring and '1' or '0') .. ' ' .. agent
  redis.call('HSET', p .. ':sessions', session, row)
end

-- leases

local function held_count(session) return redis.call('SCARD', p .. ':held:' .. session) end

local function add_lease(session, id, version)
  id, version = text(id), text(version)
  redis.call('SADD', p .. ':held:' .. session, id .. ' ' .. version)
  redis.call('ZADD', p .. ':on:' .. id .. ':' .. version, session, session)
  redis.call('ZADD', p .. ':versions:' .. id, version, version)
  redis.call('SADD', p .. ':leased', id)
end

local function remove_lease(session, id, version)
  id, version = text(id), text(version)
  local removed = redis.call('SREM', p .. ':held:' .. session, id .. ' ' .. version)
  redis.call('ZREM', p .. ':on:' .. id .. ':' .. version, session)
  if redis.call('EXISTS', p .. ':on:' .. id .. ':' .. version) == 0 then
    redis.call('ZREM', p .. ':versions:' .. id, version)
    if redis.call('EXISTS', p .. ':versions:' .. id) == 0 then
      redis.call('SREM', p .. ':leased', id)
    end
  end
  return removed
end

local function remove_all(session)
  local held = redis.call('SMEMBERS', p .. ':held:' .. session)
  for _, lease in ipairs(held) do
    local id, version = string.match(lease, '^(%d+) (%d+)$')
    remove_lease(session, tonumber(id), tonumber(version))
  end
  return #held
end

local function remove_session(session)
  local freed = remove_all(session)
  redis.call('HDEL', p .. ':sessions', session)
  return freed
end

local function sweep(id, doomed)
  local swept = 0
  for _, version in ipairs(redis.call('ZRANGE', p .. ':versions:' .. text(id), 0, -1)) do
    if doomed(tonumber(version)) then
      local key = p .. ':on:' .. text(id) .. ':' .. version
      for _, session in ipairs(redis.call('ZRANGE', key, 0, -1)) do
        swept = swept + remove_lease(session, id, tonumber(version))
      end
    end
  end
  return swept
end

local function holders(id, below, most)
  local total, named = 0, {}
  local upper = below == 0 and '+inf' or '(' .. text(below)
  local key = p .. ':versions:' .. text(id)
  for _, version in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', upper)) do
    local on = p .. ':on:' .. text(id) .. ':' .. version
    total = total + redis.call('ZCARD', on)
    if #named < most then
      for _, session in ipairs(redis.call('ZRANGE', on, 0, most - #named - 1)) do
        named[#named + 1] = {text(id), version, session, session_row(session).agent}
      end
    end
  end
  return total, named
end

-- gates: each gives a refusal, or nil

local function closed()
  if meta('seeded') ~= run then return refuse('closed') end
end

local function fenced(command_epoch)
  if command_epoch ~= epoch() then return refuse('epoch', {epoch = epoch()}) end
end

local function not_master(command_epoch) return fenced(command_epoch) or closed() end

local function may_not_publish(command_epoch)
  local refused = not_master(command_epoch)
  if refused then return refused end
  if meta('ready') ~= run then return refuse('not ready') end
end

local function no_session(session)
  local refused = closed()
  if refused then return refused end
  local row = session_row(session)
  if not row then return refuse('dead') end
  if row.expiring then return refuse('expired') end
end

local function blocked(row, below)
  local total, named = holders(row.table, below, HOLDERS_MAX)
  if total > 0 then
    row.total, row.holders = total, named
    return refuse('holders', row)
  end
end

-- D11: the number of a call that extends a session, and up to which the master has seen them
local function extension()
  local vouches = meta('vouches')
  if vouches == '' or vouches == '0' or vouches ~= meta('epoch') then return '0', '0' end
  local call = text((tonumber(meta('calls')) or 0) + 1) -- users have rights on HSET alone
  redis.call('HSET', p .. ':meta', 'calls', call)
  return call, meta('vouched') == '' and '0' or meta('vouched')
end

local commands = {}

-- an agent's commands

function commands.open(agent, session)
  local refused = closed()
  if refused then return refused end
  local row = session_row(session)
  if row then
    local fresh = row.agent == agent and row.counter == 0 and not row.expiring
    if fresh and held_count(session) == 0 then return {'opened', run, session, extension()} end
    return refuse('taken')
  end
  if redis.call('HLEN', p .. ':sessions') >= SESSIONS_MAX then return refuse('limit') end
  put_session(session, agent, 0, false)
  return {'opened', run, session, extension()}
end

function commands.renew(session, counter, held, confirmed)
  local refused = no_session(session)
  if refused then return refused end
  local row = session_row(session)
  if tonumber(counter) <= row.counter then return refuse('register') end
  if tonumber(held) ~= held_count(session) then return refuse('register') end
  if tonumber(confirmed) ~= row.counter then return refuse('register') end
  put_session(session, row.agent, tonumber(counter), false)
  return {'renewed', run, counter, extension()}
end

local function may_register(id, version, seeded)
  local row = table_row(id)
  if not row then return not seeded end
  if seeded and version > row.current then return false end
  return version >= row.current - 1
end

function commands.register(agent, session, counter)
  local row = session_row(session)
  if row and row.agent ~= agent then return refuse('taken') end
  if row and row.expiring then return refuse('expired') end
  if row and tonumber(counter) <= row.counter then return refuse('register') end
  if not row and redis.call('HLEN', p .. ':sessions') >= SESSIONS_MAX then
    return refuse('limit')
  end
  local first = 5 -- index in ARGV
  if (#ARGV - first + 1) / 2 > LEASES_PER_SESSION_MAX then return refuse('limit') end
  local seeded, refused = meta('seeded') == run, {}
  put_session(session, agent, tonumber(counter), false)
  remove_all(session)
  for i = first, #ARGV, 2 do
    local id, version = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
    if may_register(id, version, seeded) then
      add_lease(session, id, version)
    else
      refused[#refused + 1] = {text(id), text(version)}
    end
  end
  return {'registered', run, seeded and '1' or '0', refused, extension()}
end

function commands.acquire(session, counter, id, version)
  local refused = no_session(session)
  if refused then return refused end
  if tonumber(counter) < session_row(session).counter then return refuse('register') end
  id, version = tonumber(id), tonumber(version)
  local row = table_row(id)
  if not row then return refuse('unknown table', {table = id}) end
  if version > row.current then return refuse('future', row) end
  if version < math.max(row.current - 1, row.min) then return refuse('too old', row) end
  local lease = text(id) .. ' ' .. text(version)
  if redis.call('SISMEMBER', p .. ':held:' .. session, lease) == 0
    and held_count(session) >= LEASES_PER_SESSION_MAX then
    return refuse('limit')
  end
  add_lease(session, id, version)
  return {'granted', run, text(id), text(version), text(row.current)}
end

function commands.release(session, counter, id, version)
  local refused = closed()
  if refused then return refused end
  local row = session_row(session)
  if not row then return refuse('dead') end
  if tonumber(counter) < row.counter then return refuse('register') end
  return {'released', run, text(remove_lease(session, tonumber(id), tonumber(version)))}
end

function commands.end_session(session)
  return {'ended', run, text(remove_session(session))}
end

-- the master's commands

function commands.register_epoch(new, vouches)
  if tonumber(new) < epoch() then return refuse('epoch', {epoch = epoch()}) end
  local vouching = vouches == '1' and new or '0'
  redis.call('HSET', p .. ':meta', 'epoch', new, 'fences', new, 'vouches', vouching)
  return {'epoch registered', run, meta('seeded') == run and '1' or '0',
    meta('ready') == run and '1' or '0'}
end

function commands.vouch(command_epoch, run_id, call)
  local refused = not_master(tonumber(command_epoch))
  if refused then return refused end
  if run_id ~= run then return refuse('run id') end
  local calls, vouched = tonumber(meta('calls')) or 0, tonumber(meta('vouched')) or 0
  call = tonumber(call)
  if call <= calls and call > vouched then
    vouched = call
    redis.call('HSET', p .. ':meta', 'vouched', text(vouched))
  end
  return {'vouched', run, text(vouched)}
end

local function follows(from, to)
  return to == from + 1 or (from == 0 and to > 0)
end

function commands.publish(command_epoch, intent)
  local refused = may_not_publish(tonumber(command_epoch))
  if refused then return refused end
  intent = tonumber(intent)
  local already = true
  for i = 4, #ARGV, 3 do
    local from, to, row = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), table_row(tonumber(ARGV[i]))
    already = already and row and follows(from, to) and row.current == to and row.intent == intent
  end
  if already then return {'published', run, '1'} end
  for i = 4, #ARGV, 3 do
    local id, from, to = tonumber(ARGV[i]), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
    local row = table_row(id) or {table = id, current = 0, min = 0}
    if from ~= row.current or not follows(from, to) then return refuse('version', row) end
    if row.min ~= row.current then return refuse('not fenced', row) end
    local holding = from > 0 and blocked(row, from)
    if holding then return holding end
  end
  for i = 4, #ARGV, 3 do
    local id, to = tonumber(ARGV[i]), tonumber(ARGV[i + 2])
    local row = table_row(id)
    put_table(id, to, row and row.min or to, intent)
  end
  return {'published', run, '0'}
end

function commands.set_min_version(command_epoch, id, version)
  local refused = may_not_publish(tonumber(command_epoch))
  if refused then return refused end
  id, version = tonumber(id), tonumber(version)
  local row = table_row(id)
  if not row then return refuse('unknown table', {table = id}) end
  if version > row.current then return refuse('future', row) end
  local min = math.max(row.min, version)
  put_table(id, row.current, min, row.intent)
  local total, named = holders(id, min, HOLDERS_MAX)
  return {'min version set', run, text(min), text(total), named}
end

function commands.seed(command_epoch, run_id, part, final)
  local refused = fenced(tonumber(command_epoch))
  if refused then return refused end
  if run_id ~= run then return refuse('run id') end
  part = tonumber(part)
  local expected = tonumber(redis.call('HGET', p .. ':meta', 'part') or '0')
  if part ~= 0 and part ~= expected then return refuse('part') end
  if part == 0 then
    redis.call('HDEL', p .. ':meta', 'seeded', 'ready')
    redis.call('DEL', p .. ':tables')
  end
  for i = 6, #ARGV, 3 do
    put_table(tonumber(ARGV[i]), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), 0)
  end
  if final ~= '1' then
    redis.call('HSET', p .. ':meta', 'part', text(part + 1))
    return {'seeded', run, '0', '0'}
  end
  redis.call('HDEL', p .. ':meta', 'part')
  redis.call('HSET', p .. ':meta', 'seeded', run)
  local swept = 0
  for _, id in ipairs(redis.call('SMEMBERS', p .. ':leased')) do
    local row = table_row(tonumber(id))
    swept = swept + sweep(tonumber(id), function(version)
      return not row or version < row.current - 1 or version > row.current
    end)
  end
  return {'seeded', run, '1', text(swept)}
end

function commands.mark_ready(command_epoch, run_id)
  local refused = fenced(tonumber(command_epoch))
  if refused then return refused end
  if run_id ~= run then return refuse('run id') end
  refused = closed()
  if refused then return refused end
  redis.call('HSET', p .. ':meta', 'ready', run)
  return {'ready', run}
end

function commands.kill(command_epoch, session, counter)
  local refused = not_master(tonumber(command_epoch))
  if refused then return refused end
  local row = session_row(session)
  if not row then return {'killed', run, '0'} end
  if row.counter ~= tonumber(counter) then
    return refuse('counter moved', {counter = row.counter})
  end
  return {'killed', run, text(remove_session(session))}
end

-- session ids as numbers, in order
local function all_sessions()
  local flat, ids, rows = redis.call('HGETALL', p .. ':sessions'), {}, {}
  for i = 1, #flat, 2 do
    ids[#ids + 1] = flat[i]
    rows[flat[i]] = parse_session(flat[i + 1])
  end
  table.sort(ids, function(a, b) return tonumber(a) < tonumber(b) end)
  return ids, rows
end

function commands.expire(command_epoch, agent)
  local refused = not_master(tonumber(command_epoch))
  if refused then return refused end
  local found, ids, rows = {}, all_sessions()
  for _, session in ipairs(ids) do
    if rows[session].agent == agent then
      put_session(session, agent, rows[session].counter, true)
      found[#found + 1] = session
    end
  end
  return {'expired', run, found}
end

function commands.drop(command_epoch, id)
  local refused = may_not_publish(tonumber(command_epoch))
  if refused then return refused end
  local row = table_row(tonumber(id))
  if not row then return {'dropped', run, '0'} end
  refused = blocked(row, row.current)
  if refused then return refused end
  redis.call('HDEL', p .. ':tables', text(row.table))
  return {'dropped', run, text(sweep(row.table, function() return true end))}
end

-- advisory locks (lock_commands.py): an owner is "session.number", the modes are SHARED, EXCLUSIVE

local SHARED, EXCLUSIVE = 1, 2
local LOCKS_MAX, LOCK_USERS_MAX, LISTED_LOCKS_MAX, WAITS_FOLLOWED_MAX = 4096, 1000, 1000, 1000
local locks, waits = p .. ':locks', p .. ':waits'
local alive = {} -- of this call

local function is_alive(owner)
  local session = string.match(owner, '^%d+')
  if alive[session] == nil then
    alive[session] = redis.call('HGET', p .. ':sessions', session) ~= false
  end
  return alive[session]
end

local function begin_run()
  if redis.call('HGET', locks, 'run') ~= run then
    redis.call('DEL', locks, waits)
    redis.call('HSET', locks, 'run', run)
  end
end

local function lock_keys()
  local flat, keys = redis.call('HGETALL', locks), {}
  for i = 1, #flat, 2 do keys[#keys + 1] = flat[i] end
  return keys
end

local function read_lock(key)
  local holders, queue = {}, {}
  local text_of_row = redis.call('HGET', locks, key)
  if text_of_row then
    local held, waiting = string.match(text_of_row, '^(.-)|(.*)$')
    for owner, modes in string.gmatch(held, '([%d.]+)=(%d)') do
      holders[#holders + 1] = {owner, tonumber(modes)}
    end
    for owner, mode in string.gmatch(waiting, '([%d.]+)=(%d)') do
      queue[#queue + 1] = {owner, tonumber(mode)}
    end
  end
  return holders, queue
end

local function live_lock(key)
  local holders, queue = read_lock(key)
  local held, waiting = {}, {}
  for _, each in ipairs(holders) do
    if is_alive(each[1]) then held[#held + 1] = each end
  end
  for _, each in ipairs(queue) do
    if is_alive(each[1]) then waiting[#waiting + 1] = each end
  end
  return held, waiting
end

local function joined(entries)
  local texts = {}
  for i, each in ipairs(entries) do texts[i] = each[1] .. '=' .. text(each[2]) end
  return table.concat(texts, ' ')
end

local function put_lock(key, holders, queue)
  local _, before = read_lock(key)
  for _, each in ipairs(before) do
    if not is_alive(each[1]) then redis.call('HDEL', waits, each[1]) end
  end
  if #holders + #queue > 0 then
    redis.call('HSET', locks, key, joined(holders) .. '|' .. joined(queue))
  else
    redis.call('HDEL', locks, key)
  end
end

local function without(entries, owner)
  local kept = {}
  for _, each in ipairs(entries) do
    if each[1] ~= owner then kept[#kept + 1] = each end
  end
  return kept
end

local function leave_queue(me)
  local key = redis.call('HGET', waits, me)
  redis.call('HDEL', waits, me)
  local holders, queue = live_lock(key)
  put_lock(key, holders, without(queue, me))
end

local function conflict(one, other) return one >= EXCLUSIVE or other >= EXCLUSIVE end

-- others that hold the lock, and those before a place in its queue
local function before(holders, queue, me, place)
  local found = {}
  for _, each in ipairs(holders) do
    if each[1] ~= me then found[#found + 1] = each end
  end
  for n = 1, place - 1 do
    if queue[n][1] ~= me then found[#found + 1] = queue[n] end
  end
  return found
end

local function is_in(queue, me, mode)
  for n, each in ipairs(queue) do
    if each[1] == me and each[2] == mode then return n end
  end
end

local function place_of(queue, me, mode, had)
  local place = is_in(queue, me, mode)
  if place then return place end
  for n, each in ipairs(queue) do
    if had > 0 and conflict(had, each[2]) then return n end
  end
  return #queue + 1
end

local function is_full(key, holders, queue)
  if #holders + #queue >= LOCK_USERS_MAX then return true end
  if not redis.call('HGET', locks, key) and redis.call('HLEN', locks) > LOCKS_MAX then
    for _, each in ipairs(lock_keys()) do
      if each ~= 'run' then put_lock(each, live_lock(each)) end
    end
    return redis.call('HLEN', locks) > LOCKS_MAX
  end
  return false
end

local function is_deadlock(me)
  local seen, count, left = {[me] = true}, 1, {me}
  while #left > 0 and count <= WAITS_FOLLOWED_MAX do
    local waiter = table.remove(left)
    local key = redis.call('HGET', waits, waiter)
    if key then
      local holders, queue = live_lock(key)
      local place = 1
      while queue[place][1] ~= waiter do place = place + 1 end
      for _, each in ipairs(before(holders, queue, waiter, place)) do
        if conflict(queue[place][2], each[2]) then
          if each[1] == me then return true end
          if not seen[each[1]] then
            seen[each[1]], count = true, count + 1
            left[#left + 1] = each[1]
          end
        end
      end
    end
  end
  return false
end

local function no_locks(session)
  local refused = no_session(session)
  if refused then return refused end
  if meta('ready') ~= run then return refuse('not ready') end
  if meta('fences') ~= meta('epoch') then return refuse('unfenced') end
end

local function modes_of(holders, me)
  for _, each in ipairs(holders) do
    if each[1] == me then return each[2] end
  end
  return 0
end

function commands.claim_locks(session, owner)
  local refused = no_locks(session)
  if refused then return refused end
  begin_run()
  local me, wanted = session .. '.' .. owner, tonumber(ARGV[4])
  local mode = ARGV[5] == '1' and EXCLUSIVE or SHARED
  local held, full = {}, '0'
  for i = 6, #ARGV, 3 do
    if #held >= wanted then break end
    local key = ARGV[i] .. ':' .. ARGV[i + 1] .. ':' .. ARGV[i + 2]
    local holders, queue = live_lock(key)
    local had, free = modes_of(holders, me), redis.call('HGET', waits, me) ~= key
    if had == mode or had == SHARED + EXCLUSIVE then
      free = true
    else
      for _, each in ipairs(before(holders, queue, me, #queue + 1)) do
        if conflict(mode, each[2]) then free = false end
      end
      if free then
        if had == 0 and is_full(key, holders, queue) then
          full = '1'
          break
        end
        holders = without(holders, me)
        holders[#holders + 1] = {me, had + mode}
      end
      put_lock(key, holders, queue)
    end
    if free then held[#held + 1] = text((i - 6) / 3) end
  end
  return {'locks claimed', run, text(epoch()), full, held}
end

function commands.take_lock(session, owner)
  local refused = no_locks(session)
  if refused then return refused end
  begin_run()
  local me, key = session .. '.' .. owner, ARGV[4] .. ':' .. ARGV[5] .. ':' .. ARGV[6]
  local mode = ARGV[7] == '1' and EXCLUSIVE or SHARED
  local elsewhere = redis.call('HGET', waits, me)
  if elsewhere and elsewhere ~= key then leave_queue(me) end
  local holders, queue = live_lock(key)
  local had = 0
  for _, each in ipairs(holders) do
    if each[1] == me then had = each[2] end
  end
  if had == mode or had == SHARED + EXCLUSIVE then return {'lock taken', run, text(epoch())} end
  local place, blocked_by = place_of(queue, me, mode, had), nil
  for _, each in ipairs(before(holders, queue, me, place)) do
    if conflict(mode, each[2]) then blocked_by = each[1] end
  end
  if not blocked_by then
    if had == 0 and is_full(key, holders, queue) then return refuse('limit') end
    local held = without(holders, me)
    held[#held + 1] = {me, had + mode}
    redis.call('HDEL', waits, me)
    put_lock(key, held, without(queue, me))
    return {'lock taken', run, text(epoch())}
  end
  if ARGV[8] ~= '1' then
    put_lock(key, holders, queue)
    return refuse('locked')
  end
  if not is_in(queue, me, mode) then
    if is_full(key, holders, queue) then return refuse('limit') end
    queue = without(queue, me)
    table.insert(queue, math.min(place, #queue + 1), {me, mode})
  end
  put_lock(key, holders, queue)
  redis.call('HSET', waits, me, key)
  if is_deadlock(me) then
    leave_queue(me)
    return refuse('deadlock')
  end
  return {'lock waits', run}
end

local function give_lock(me, key, mode)
  if redis.call('HGET', waits, me) == key then leave_queue(me) end
  local holders, queue = live_lock(key)
  local had, given = 0, '0'
  for _, each in ipairs(holders) do
    if each[1] == me then had = each[2] end
  end
  if had == mode or had == SHARED + EXCLUSIVE then
    had, given = had - mode, '1'
  end
  holders = without(holders, me)
  if had > 0 then holders[#holders + 1] = {me, had} end
  put_lock(key, holders, queue)
  return given
end

function commands.give_lock(session, owner)
  local refused = closed()
  if refused then return refused end
  begin_run()
  local key = ARGV[4] .. ':' .. ARGV[5] .. ':' .. ARGV[6]
  local mode = ARGV[7] == '1' and EXCLUSIVE or SHARED
  return {'lock given', run, give_lock(session .. '.' .. owner, key, mode)}
end

function commands.give_locks(session, owner)
  local refused = closed()
  if refused then return refused end
  begin_run()
  local mode, given = ARGV[4] == '1' and EXCLUSIVE or SHARED, '0'
  for i = 5, #ARGV, 3 do
    local key = ARGV[i] .. ':' .. ARGV[i + 1] .. ':' .. ARGV[i + 2]
    if give_lock(session .. '.' .. owner, key, mode) == '1' then given = '1' end
  end
  return {'lock given', run, given}
end

function commands.list_locks(names_max)
  local found, agents = {}, {}
  local function add(key, owner, mode, granted)
    local session, number = string.match(owner, '^(%d+)%.(%d+)$')
    agents[session] = agents[session] or session_row(session).agent
    local space, high, low = string.match(key, '^(%d+):(%d+):(%d+)$')
    found[#found + 1] = {space, high, low, session, agents[session], number,
      mode == EXCLUSIVE and '1' or '0', granted}
  end
  if redis.call('HGET', locks, 'run') == run then
    for _, key in ipairs(lock_keys()) do
      if key ~= 'run' then
        local holders, queue = live_lock(key)
        for _, each in ipairs(holders) do
          if each[2] ~= EXCLUSIVE then add(key, each[1], SHARED, '1') end
          if each[2] ~= SHARED then add(key, each[1], EXCLUSIVE, '1') end
        end
        for _, each in ipairs(queue) do add(key, each[1], each[2], '0') end
      end
    end
  end
  table.sort(found, function(a, b)
    for _, n in ipairs({1, 2, 3, 4, 6, 8, 7}) do
      if a[n] ~= b[n] then return tonumber(a[n]) < tonumber(b[n]) end
    end
    return false
  end)
  local named = {}
  for n = 1, math.min(#found, tonumber(names_max), LISTED_LOCKS_MAX) do named[n] = found[n] end
  return {'locks', run, named}
end

-- questions

function commands.holders(id, below, names_max)
  local most = math.min(tonumber(names_max), HOLDERS_MAX)
  local total, named = holders(tonumber(id), tonumber(below), most)
  return {'holders', run, meta('ready') == run and '1' or '0', text(total), named}
end

local function report(kind)
  local found, ids, rows = {}, all_sessions()
  for i, session in ipairs(ids) do
    local row = rows[session]
    found[i] = {session, row.agent, text(row.counter), text(held_count(session)),
      row.expiring and '1' or '0'}
  end
  return {kind, run, text(epoch()), meta('seeded') == run and '1' or '0',
    meta('ready') == run and '1' or '0', found}
end

function commands.liveness()
  local reply = report('liveness')
  reply[7] = meta('calls') == '' and '0' or meta('calls')
  return reply
end

function commands.newest()
  local flat, rows = redis.call('HGETALL', p .. ':tables'), {}
  for i = 1, #flat, 2 do
    rows[#rows + 1] = {flat[i], string.match(flat[i + 1], '^%d+')}
  end
  table.sort(rows, function(a, b) return tonumber(a[1]) < tonumber(b[1]) end)
  return {'newest', run, rows}
end

function commands.snapshot()
  local flat, rows = redis.call('HGETALL', p .. ':tables'), {}
  for i = 1, #flat, 2 do
    local row, leases = table_row(tonumber(flat[i])), {}
    for n, version in ipairs(redis.call('ZRANGE', p .. ':versions:' .. flat[i], 0, -1)) do
      local on = p .. ':on:' .. flat[i] .. ':' .. version
      leases[n] = {version, text(redis.call('ZCARD', on))}
    end
    rows[#rows + 1] = {text(row.table), text(row.current), text(row.min), text(row.intent), leases}
  end
  table.sort(rows, function(a, b) return tonumber(a[1]) < tonumber(b[1]) end)
  local reply = report('snapshot')
  reply[7] = rows
  return reply
end

-- Only so many are passed on as a commands's named arguments; longer lists are read from ARGV.
return commands[ARGV[1]](ARGV[2], ARGV[3], ARGV[4], ARGV[5])
