const path = require('path');
module.exports = {
  dialect: 'postgresql',
  schema: path.join(__dirname, 'schema.js'),
  out: process.env.WALK_OUT,
  dbCredentials: { url: process.env.WALK_URL },
};
